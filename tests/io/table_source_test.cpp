// SPDX-License-Identifier: Apache-2.0
// Every table reader: what it reads, and what it says about files it cannot read.
#include "mase/io/tables/table_source.h"

#include <cmath>

#include "mase/base/tensor.h"
#include "support/support.h"
#include "support/table_files.h"

namespace mase::table_source_test {
namespace {

std::string file_with(const std::string& name, const std::string& content) {
  const std::string path = test::temporary_folder() + "/" + name;
  test::write(path, content);
  return path;
}

struct Read {
  std::vector<TableColumn> columns;
  std::vector<double> cells;
  int64_t rows = 0;
};

Read read_all(const std::string& path, const TableOptions& options = {}, int64_t block = 3) {
  const auto source = open_table(path, options);
  Read result{source->columns(), {}, 0};
  std::vector<double> cells(static_cast<size_t>(block) * source->selected().size());
  while (const int64_t count = source->read(cells.data(), block)) {
    result.cells.insert(result.cells.end(), cells.begin(),
                        cells.begin() + count * static_cast<int64_t>(source->selected().size()));
    result.rows += count;
  }
  EXPECT_EQ(result.rows, source->rows());
  return result;
}

// The message, with the temporary folder removed.
std::string complaint(const std::string& path, const TableOptions& options = {}) {
  try {
    read_all(path, options);
  } catch (const Error& error) {
    return replace_all(error.what(), path, "FILE");
  }
  return "no error";
}

using Cells = std::vector<double>;

TEST(Csv, ReadsQuotesCrlfAndWords) {
  const Read table = read_all(file_with(
      "a.csv", "a,\"b, c\",kind\r\n1,2.5,\"x\"\r\n\r\n-3e2,+4,\"y \"\"z\"\"\"\r\n0,.5,x"));
  ASSERT_EQ(table.columns.size(), 3u);
  EXPECT_EQ(table.columns[1].name, "b, c");
  EXPECT_TRUE(table.columns[2].text);
  EXPECT_EQ(table.columns[2].categories, (std::vector<std::string>{"x", "y \"z\""}));
  EXPECT_EQ(table.cells, (Cells{1, 2.5, 0, -300, 4, 1, 0, 0.5, 0}));
}

TEST(Csv, ReadsFilesWithoutHeaderAndOtherSeparators) {
  const Read table = read_all(file_with("a.csv", "1;2\n3;4\n"));
  EXPECT_EQ(table.columns[0].name, "column_1");
  EXPECT_EQ(table.cells, (Cells{1, 2, 3, 4}));
  EXPECT_EQ(read_all(file_with("a.tsv", "x\ty\n1\t2\n")).cells, (Cells{1, 2}));
}

TEST(Csv, MissingCellsAreNaN) {
  const Read table = read_all(file_with("a.csv", "a,b\n1,\nNA,2\n,?\nnan,inf\n"));
  ASSERT_EQ(table.rows, 4);
  for (const size_t i : {1u, 2u, 4u, 5u, 6u}) EXPECT_TRUE(std::isnan(table.cells[i])) << i;
  EXPECT_TRUE(std::isinf(table.cells[7]));
}

TEST(Csv, ReadsDecimalCommasWhereTheyAreClear) {
  const Read table = read_all(file_with("a.csv", "a;b\n1,5;x\n-2;y\n0,25;x\n3,125;y\n"));
  EXPECT_FALSE(table.columns[0].text);
  EXPECT_EQ(table.cells, (Cells{1.5, 0, -2, 1, 0.25, 0, 3.125, 1}));
  EXPECT_EQ(read_all(file_with("a.csv", "1,5;2,5\n3;4,75\n")).cells, (Cells{1.5, 2.5, 3, 4.75}));
  EXPECT_EQ(read_all(file_with("a.csv", "a,b\n\"1,5\",2\n\"2,5e1\",3\n")).cells,
            (Cells{1.5, 2, 25, 3}));
  EXPECT_NE(read_all(file_with("a.csv", "a;b\n1,234;2\n7,500;3\n"))
                .columns[0]
                .problem.find("may mean a decimal comma or thousands"),
            std::string::npos);
  EXPECT_NE(read_all(file_with("a.csv", "a;b\n1,5;2\n2.5;3\n"))
                .columns[0]
                .problem.find("write all of them with a point"),
            std::string::npos);
  // Words with commas stay words.
  EXPECT_TRUE(read_all(file_with("a.csv", "a;b\nx,y;1\nz;2\n1,5;3\n")).columns[0].text);
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(complaint(file_with("a.csv", "")), "FILE: the file is empty");
  EXPECT_EQ(complaint(file_with("a.csv", "a,b\n")), "FILE: the file has a header but no rows");
  EXPECT_EQ(complaint(file_with("a.csv", "a,b\n1,2\n3\n")), "FILE:3: 1 cells where 2 are expected");
  EXPECT_EQ(complaint(file_with("a.csv", "a,b\n1,2\n3,4\nx,5\n")),
            "FILE:4: column 'a': 'x' is not a number");
  EXPECT_EQ(complaint(file_with("a.csv", "a\n\"1\n")), "FILE:2: a quote is never closed");
  EXPECT_EQ(complaint(file_with("a.csv", "a,a\n1,2\n")), "FILE:1: two columns are named 'a'");
  EXPECT_EQ(complaint(test::temporary_folder()), "FILE: is a folder, not a file");
  EXPECT_EQ(complaint(file_with("a.xyz", "hello")).substr(0, 38),
            "FILE: is of no known table format; kno");
}

TEST(Csv, NumbersAmongManyWordsAreWords) {
  std::string text = "a,b\n";
  constexpr int words = 30000;  // what a quadratic search would feel
  for (int i = 0; i < words; ++i) text += fmt::format("w{},1\nv{},2\n{},3\n", i, i, i);
  const Read table = read_all(file_with("a.csv", text), {}, 1000);
  ASSERT_TRUE(table.columns[0].problem.find("more than 65536 different words") != std::string::npos)
      << table.columns[0].problem;
  const Read few = read_all(file_with("a.csv", "a,b\nx,1\n7,2\ny,3\n"));
  EXPECT_EQ(few.columns[0].categories, (std::vector<std::string>{"7", "x", "y"}));
  EXPECT_EQ(few.cells, (Cells{1, 1, 0, 2, 2, 3}));
}

TEST(Arff, ReadsNominalNumericAndStringAttributes) {
  const Read table =
      read_all(file_with("a.arff",
                         "% a comment\n@RELATION jets\n@attribute 'z log z' NUMERIC\n"
                         "@attribute class {g, q,'w z'}\n@attribute s string\n"
                         "@data\n1.5,q,b\n% more\n?,'w z',\"a\"\n-2,g,b\n"));
  EXPECT_EQ(table.columns[0].name, "z log z");
  EXPECT_EQ(table.columns[1].categories, (std::vector<std::string>{"g", "q", "w z"}));
  EXPECT_EQ(table.columns[2].categories, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(table.rows, 3);
  EXPECT_EQ(table.cells[1], 1);
  EXPECT_TRUE(std::isnan(table.cells[3]));
  EXPECT_EQ(table.cells[4], 2);
  EXPECT_EQ(table.cells[6], -2);
}

TEST(Arff, SaysWhatIsWrongAndWhere) {
  const std::string head = "@relation r\n@attribute a numeric\n@attribute c {x,y}\n";
  EXPECT_EQ(complaint(file_with("a.arff", head)), "FILE: the file ends before @data");
  EXPECT_EQ(complaint(file_with("a.arff", head + "@data\n1,x\n2,z\n")),
            "FILE:6: attribute 'c': 'z' is not one of its categories; did you mean 'x'?");
  EXPECT_EQ(complaint(file_with("a.arff", head + "@data\n1\n")),
            "FILE:5: 1 cells where 2 are expected");
  EXPECT_EQ(complaint(file_with("a.arff", head + "@data\nx,y\n")),
            "FILE:5: attribute 'a': 'x' is not a number");
  EXPECT_EQ(complaint(file_with("a.arff", head + "@data\n{0 1}\n")).substr(0, 46),
            "FILE:5: sparse ARFF rows are not supported; sa");
}

TEST(Arff, ZeroBytesInAHeaderEnd) {
  using namespace std::string_literals;
  const std::string head = "@relation r\n@attribute a {x\0y, z}\n@data\n"s;
  EXPECT_EQ(read_all(file_with("a.arff", head + "z\n")).cells, (Cells{1}));
  EXPECT_NE(complaint(file_with("a.arff", "@attribute a {x\0"s)).find("never closed"),
            std::string::npos);
}

TEST(Npy, ReadsAllVersionsOrdersAndTypes) {
  for (int version = 1; version <= 3; ++version)
    EXPECT_EQ(
        read_all(file_with("a.npy", test::npy_text("'<f4'", false, "(2, 2)",
                                                   test::bytes_of<float>({1, 2, 3, 4}), version)))
            .cells,
        (Cells{1, 2, 3, 4}));
  EXPECT_EQ(
      read_all(file_with("a.npy", test::npy_text("'<f8'", true, "(4, 2)",
                                                 test::bytes_of<double>({1, 2, 3, 4, 5, 6, 7, 8}))))
          .cells,
      (Cells{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(read_all(file_with("a.npy", test::npy_text("'>i2'", false, "(2,)",
                                                       std::string("\x01\x00\xff\xfe", 4))))
                .cells,
            (Cells{256, -2}));
  EXPECT_EQ(read_all(file_with("a.npy", test::npy_text("'|u1'", false, "(2,)", "\xff\x01"))).cells,
            (Cells{255, 1}));
  EXPECT_EQ(
      read_all(file_with("a.npy", test::npy_text("'|b1'", false, "(2,)", std::string("\0\1", 2))))
          .cells,
      (Cells{0, 1}));
  EXPECT_EQ(
      read_all(file_with("a.npy", test::npy_text("'<f2'", false, "(1,)",
                                                 test::bytes_of<uint16_t>({float_to_half(1.5f)}))))
          .cells,
      (Cells{1.5}));
  EXPECT_EQ(read_all(file_with("a.npy", test::npy_text("'<u8'", false, "(1,)",
                                                       test::bytes_of<uint64_t>({7}))))
                .cells,
            (Cells{7}));
}

TEST(Npy, ReadsRecords) {
  std::string data;
  for (const float value : {1.0f, 2.0f}) {
    data += test::bytes_of<float>({value});
    data += test::bytes_of<int64_t>({static_cast<int64_t>(value) + 10});
  }
  const Read table = read_all(
      file_with("a.npy", test::npy_text("[('x', '<f4'), ('y', '<i8')]", false, "(2,)", data)));
  EXPECT_EQ(table.columns[1].name, "y");
  EXPECT_EQ(table.cells, (Cells{1, 11, 2, 12}));
}

TEST(Npy, RefusesLiesAndPickles) {
  const std::string four = test::bytes_of<float>({1, 2, 3, 4});
  EXPECT_EQ(complaint(file_with("a.npy", test::npy_text("'<f4'", false, "(3, 2)", four))),
            "FILE: the header promises 24 bytes of numbers, the file has 16; the file is cut short "
            "or damaged");
  EXPECT_NE(complaint(file_with("a.npy", test::npy_text("'|O'", false, "(2,)", four)))
                .find("holds pickled Python objects, which are refused"),
            std::string::npos);
  EXPECT_NE(complaint(file_with("a.npy", test::npy_text("'<f4'", false,
                                                        "(99999999999999, 99999999999)", four)))
                .find("too many elements"),
            std::string::npos);
  EXPECT_EQ(complaint(file_with("a.npy", test::npy_text("'<U4'", false, "(1,)", four))),
            "FILE: the array is of dtype '<U4', not a number");
  EXPECT_NE(complaint(file_with("a.npy", "\x93NUMPY\x01")).find("damaged"), std::string::npos);
  EXPECT_NE(complaint(file_with("a.npy", "not numpy")).find("is not a NumPy array"),
            std::string::npos);
}

TEST(Npz, PutsArraysSideBySide) {
  const std::string path = test::temporary_folder() + "/a.npz";
  test::write_zip(
      path,
      {{"X.npy",
        test::npy_text("'<f4'", false, "(3, 2)", test::bytes_of<float>({1, 2, 3, 4, 5, 6}))},
       {"y.npy", test::npy_text("'<i8'", false, "(3,)", test::bytes_of<int64_t>({7, 8, 9}))},
       {"F.npy",
        test::npy_text("'<f4'", true, "(3, 2)", test::bytes_of<float>({1, 2, 3, 4, 5, 6}))},
       {"names.npy", test::npy_text("'<i8'", false, "(2,)", test::bytes_of<int64_t>({0, 1}))}});
  const Read table = read_all(path, {}, 2);
  ASSERT_EQ(table.columns.size(), 5u);
  EXPECT_EQ(table.columns[0].name, "F_1");
  EXPECT_EQ(table.columns[2].name, "X_1");
  EXPECT_EQ(table.columns[4].name, "y");
  EXPECT_EQ(table.cells, (Cells{1, 4, 1, 2, 7, 2, 5, 3, 4, 8, 3, 6, 5, 6, 9}));
}

TEST(Npy, RefusesRecordsInTwoDimensions) {
  const std::string four = test::bytes_of<float>({1, 2, 3, 4});
  EXPECT_EQ(complaint(file_with("a.npy", test::npy_text("[('a', '<f4')]", true, "(2, 2)", four))),
            "FILE: records in more than one dimension are not supported");
}

TEST(Npz, ReadsFortranOrderOfAnyRank) {
  // F[i, j, k] = 100 i + 10 j + k, of shape (3, 2, 2); columns are numbered in C order.
  std::vector<float> stored;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 2; ++j)
      for (int i = 0; i < 3; ++i) stored.push_back(static_cast<float>(100 * i + 10 * j + k));
  const std::string array = test::npy_text("'<f4'", true, "(3, 2, 2)", test::bytes_of(stored));
  const std::string path = test::temporary_folder() + "/f.npz";
  test::write_zip(path, {{"F.npy", array}});
  const Cells expected = {0, 1, 10, 11, 100, 101, 110, 111, 200, 201, 210, 211};
  EXPECT_EQ(read_all(path, {}, 2).cells, expected);
  EXPECT_EQ(read_all(file_with("f.npy", array), {}, 2).cells, expected);
}

TEST(Npz, RefusesBombsAndDamage) {
  const std::string path = test::temporary_folder() + "/a.npz";
  const int64_t huge = 260 << 20;
  test::write_zip(path, {{"X.npy", test::npy_text("'|u1'", false, "(" + std::to_string(huge) + ",)",
                                                  std::string(static_cast<size_t>(huge), '\0'))}});
  EXPECT_NE(complaint(path).find("would expand to"), std::string::npos) << complaint(path);
  test::write_zip(path, {{"X.npy", test::npy_text("'<f4'", false, "(9, 9)", "abcd")}});
  EXPECT_NE(complaint(path).find("the header promises 324 bytes"), std::string::npos);
  const std::string whole = test::read(path);
  test::write(path, whole.substr(0, whole.size() / 2));
  EXPECT_NE(complaint(path).find("cut short or damaged"), std::string::npos);
}

TEST(Hdf5, ReadsCompoundTablesAndNamedMatrices) {
  const std::string path = test::temporary_folder() + "/jets.z";
  test::write_jets_hdf5(path, 25000, [](int64_t row) { return row; });
  const auto source = open_table(path);
  EXPECT_EQ(source->rows(), 25000);
  source->select({source->column("j_multiplicity"), source->column("j_t")});
  std::vector<double> cells(2 * 30000);
  int64_t row = 0;
  while (const int64_t count = source->read(cells.data(), 30000))
    for (int64_t i = 0; i < count; ++i, ++row) {
      const test::JetRow jet = test::made_up_jet(row);
      ASSERT_EQ(cells[2 * static_cast<size_t>(i)], double{jet.features[15]}) << row;
      ASSERT_EQ(cells[2 * static_cast<size_t>(i) + 1], jet.label == 4 ? 1 : 0) << row;
    }
  EXPECT_EQ(row, 25000);

  const std::string matrix = test::temporary_folder() + "/m.h5";
  test::write_matrix_hdf5(matrix, {"j_a", "j_b", "j_c"}, {1, 2, 3, 4, 5, 6});
  const Read table = read_all(matrix);
  EXPECT_EQ(table.columns[1].name, "j_b");
  EXPECT_EQ(table.cells, (Cells{1, 2, 3, 4, 5, 6}));
}

TEST(Hdf5, SaysWhatIsWrong) {
  const std::string path = test::temporary_folder() + "/jets.z";
  test::write_jets_hdf5(path, 3000, [](int64_t row) { return row; });
  const std::string whole = test::read(path);
  for (const double share : {0.02, 0.5, 0.99}) {
    test::write(path,
                whole.substr(0, static_cast<size_t>(share * static_cast<double>(whole.size()))));
    EXPECT_NE(complaint(path).find("cut short or damaged"), std::string::npos) << complaint(path);
  }
  test::write(path, whole);
  EXPECT_NE(complaint(path, {.table = "t_allpar"}).find("t_allpar_new"), std::string::npos);
  const auto source = open_table(path);
  EXPECT_THROW(source->column("j_nothing"), Error);
}

}  // namespace
}  // namespace mase::table_source_test

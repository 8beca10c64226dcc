// SPDX-License-Identifier: Apache-2.0
// Our HDF5 reader against libhdf5 as the writer: every layout, index and filter that is read gives
// the numbers that were written, what is not read is refused by name, and no changed byte does more
// than that.
#include <hdf5.h>

#include <cstring>

#include "mase/base/random.h"
#include "mase/io/tables/table_source.h"
#include "support/support.h"

namespace mase::hdf5_test {
namespace {

struct Way {
  bool latest = false;
  bool compound = false;
  bool chunked = false, resizable = false, compact = false;
  bool room = false, early = false;  // may grow to an end; its place is taken at once
  bool deflate = false, shuffle = false, checksum = false;
  bool committed = false, nested = false;
  hsize_t rows = 57;
};

struct Row {
  float a;
  int16_t b;
  double c;
};
constexpr hsize_t width = 5;

double cell(hsize_t row, hsize_t column) {
  return static_cast<double>(row) * 3 - static_cast<double>(column) * 0.5;
}

std::string write_file(const Way& way) {
  const std::string path = test::temporary_folder() + "/a.h5";
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (way.latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t group =
      way.nested ? H5Gcreate2(file, "deep", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : file;
  hid_t type = H5Tcopy(H5T_IEEE_F32BE);
  if (way.compound) {
    type = H5Tcreate(H5T_COMPOUND, sizeof(Row));
    H5Tinsert(type, "a", offsetof(Row, a), H5T_NATIVE_FLOAT);
    H5Tinsert(type, "b", offsetof(Row, b), H5T_NATIVE_INT16);
    H5Tinsert(type, "c", offsetof(Row, c), H5T_NATIVE_DOUBLE);
  }
  if (way.committed) H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t extent[2] = {way.rows, width};
  const hsize_t most[2] = {way.room ? 3 * way.rows : H5S_UNLIMITED, way.room ? 2 * width : width};
  const int rank = way.compound ? 1 : 2;
  const hid_t space = H5Screate_simple(rank, extent, way.resizable || way.room ? most : nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[2] = {10, 2};
  if (way.chunked) H5Pset_chunk(creation, rank, chunk);
  if (way.early) H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  if (way.compact) H5Pset_layout(creation, H5D_COMPACT);
  if (way.shuffle) H5Pset_shuffle(creation);
  if (way.deflate) H5Pset_deflate(creation, 4);
  if (way.checksum) H5Pset_fletcher32(creation);
  const hid_t set = H5Dcreate2(group, "t", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  if (way.compound) {
    std::vector<Row> rows;
    for (hsize_t i = 0; i < way.rows; ++i)
      rows.push_back({static_cast<float>(cell(i, 0)), static_cast<int16_t>(i), cell(i, 2)});
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data());
  } else {
    std::vector<float> values;
    for (hsize_t i = 0; i < way.rows; ++i)
      for (hsize_t k = 0; k < width; ++k) values.push_back(static_cast<float>(cell(i, k)));
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  H5Dclose(set);
  H5Pclose(creation);
  H5Sclose(space);
  H5Tclose(type);
  if (way.nested) H5Gclose(group);
  H5Fclose(file);
  H5Pclose(access);
  return path;
}

std::vector<double> cells_of(const std::string& path) {
  const auto source = open_table(path);
  const size_t columns = source->selected().size();
  std::vector<double> all, block(columns * 7);
  while (const int64_t count = source->read(block.data(), 7))
    all.insert(all.end(), block.begin(), block.begin() + count * static_cast<int64_t>(columns));
  return all;
}

std::string complaint(const std::string& path) {
  try {
    cells_of(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<double> expected(const Way& way) {
  std::vector<double> cells;
  for (hsize_t i = 0; i < way.rows; ++i) {
    if (way.compound)
      cells.insert(cells.end(),
                   {double{static_cast<float>(cell(i, 0))}, static_cast<double>(i), cell(i, 2)});
    else
      for (hsize_t k = 0; k < width; ++k) cells.push_back(double{static_cast<float>(cell(i, k))});
  }
  return cells;
}

TEST(Hdf5, ReadsWhatLibhdf5Writes) {
  int ways = 0;
  for (int bits = 0; bits < 256; ++bits) {
    Way way;
    way.latest = bits & 1;
    way.compound = bits & 2;
    way.chunked = bits & 4;
    way.shuffle = bits & 8;
    way.deflate = bits & 16;
    way.checksum = bits & 32;
    way.nested = bits & 64;
    way.committed = bits & 128;
    if (!way.chunked && (way.shuffle || way.deflate || way.checksum)) continue;
    ASSERT_EQ(cells_of(write_file(way)), expected(way)) << bits;
    ++ways;
  }
  EXPECT_EQ(ways, 8 * 2 + 8 * 8 * 2);
  for (const bool compound : {false, true}) {
    const Way compact{.compound = compound, .compact = true};
    EXPECT_EQ(cells_of(write_file(compact)), expected(compact));
    // Tables that may grow to an end, which their indices have room for.
    for (const bool latest : {false, true})
      for (const bool deflate : {false, true})
        for (const bool checksum : {false, true})
          for (const hsize_t rows : {7u, 57u, 3000u, 30000u}) {
            Way roomy{.latest = latest, .compound = compound, .chunked = true, .room = true};
            roomy.deflate = deflate;
            roomy.checksum = checksum;
            roomy.rows = rows;
            EXPECT_EQ(cells_of(write_file(roomy)), expected(roomy)) << latest << " " << rows;
            if (deflate || checksum) continue;
            roomy.early = true;
            EXPECT_EQ(cells_of(write_file(roomy)), expected(roomy)) << latest << " " << rows;
          }
    // Tables that may grow, of a few chunks and of many.
    for (const bool latest : {false, true})
      for (const hsize_t rows : {57u, 3000u, 30000u}) {
        Way grown{.latest = latest, .compound = compound, .chunked = true, .resizable = true};
        grown.rows = rows;
        EXPECT_EQ(cells_of(write_file(grown)), expected(grown)) << latest << " " << rows;
        grown.deflate = true;
        EXPECT_EQ(cells_of(write_file(grown)), expected(grown)) << latest << " " << rows;
      }
    // Many chunks: a tree of several levels, an index of several pages.
    for (const bool latest : {false, true}) {
      const Way many{.latest = latest, .compound = compound, .chunked = true, .rows = 30000};
      EXPECT_EQ(cells_of(write_file(many)), expected(many)) << latest;
    }
    const Way single{
        .latest = true, .compound = compound, .chunked = true, .deflate = true, .rows = 10};
    EXPECT_EQ(cells_of(write_file(single)), expected(single));
  }
}

TEST(Hdf5, RefusesWhatItDoesNotReadByName) {
  const std::string path = test::temporary_folder() + "/n.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t extent[2] = {40, 4}, chunk[2] = {10, 4};
  const hid_t space = H5Screate_simple(2, extent, nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 2, chunk);
  H5Pset_nbit(creation);
  const hid_t set = H5Dcreate2(file, "t", H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const std::vector<int32_t> zeros(160);
  H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
  H5Dclose(set);
  H5Pset_chunk(creation, 2, chunk);
  const hid_t plain = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(plain, 2, chunk);
  H5Dclose(H5Dcreate2(file, "empty", H5T_STD_I32LE, space, H5P_DEFAULT, plain, H5P_DEFAULT));
  H5Pclose(plain);
  H5Pclose(creation);
  H5Sclose(space);
  H5Fclose(file);
  const auto said = [&](const std::string& name) -> std::string {
    try {
      open_table(path, {.table = name});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(said("t").find("is packed by n-bit packing"), std::string::npos) << said("t");
  // Zeros are not made up for rows that nobody wrote.
  EXPECT_NE(said("empty").find("were never written"), std::string::npos) << said("empty");
}

TEST(Hdf5, NoChangedByteDoesHarm) {
  Random random(11, "hdf5");
  const std::string path = test::temporary_folder() + "/m.h5";
  for (const bool latest : {false, true})
    for (const bool compound : {false, true}) {
      const std::string whole = test::read(write_file({.latest = latest,
                                                       .compound = compound,
                                                       .chunked = true,
                                                       .deflate = true,
                                                       .checksum = true,
                                                       .committed = true,
                                                       .nested = true}));
      size_t refused = 0;
      constexpr int tries = 600;
      for (int i = 0; i < tries; ++i) {
        std::string content = whole;
        char& byte = content[random.below(content.size())];
        byte =
            static_cast<char>(i % 3 == 0 ? 0xff : byte ^ static_cast<char>(1 + random.below(255)));
        test::write(path, content);
        refused += complaint(path) != "no error";
      }
      EXPECT_GT(refused, 50u);
    }
}

}  // namespace
}  // namespace mase::hdf5_test

// SPDX-License-Identifier: Apache-2.0
// Table files made by tests: .npy, .npz and HDF5 files in the layouts of the published jet data.
#pragma once

#include <hdf5.h>
#include <zip.h>

#include <cstring>
#include <string>
#include <vector>

#include "mase/data/substructure.h"
#include "support/support.h"

namespace mase::test {

// An .npy file of version 1 with this header dict and these raw bytes.
inline std::string npy_text(const std::string& descr, bool fortran, const std::string& shape,
                            const std::string& data, int version = 1) {
  std::string header = "{'descr': " + descr + ", 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  const size_t start = version == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct ZipMember {
  std::string name, content;
};

inline void write_zip(const std::string& path, const std::vector<ZipMember>& members) {
  int failure = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &failure);
  ASSERT_NE(archive, nullptr);
  for (const ZipMember& member : members) {
    zip_source_t* source =
        zip_source_buffer(archive, member.content.data(), member.content.size(), 0);
    const zip_int64_t index = zip_file_add(archive, member.name.c_str(), source, 0);
    ASSERT_GE(index, 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_DEFLATE, 1);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

// Row `i` of made-up jets: distinct unless `repeat` says that it repeats an earlier one.
struct JetRow {
  float features[16];
  int label;
};

inline JetRow made_up_jet(int64_t row) {
  JetRow jet{};
  jet.label = static_cast<int>(row % 5);
  uint64_t state = static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15ULL + 1;
  for (int i = 0; i < 16; ++i) {
    state ^= state >> 29;
    state *= 0xbf58476d1ce4e5b9ULL;
    jet.features[i] =
        static_cast<float>(state >> 40) * 0x1p-24f + 0.2f * static_cast<float>(jet.label);
  }
  return jet;
}

// The original file's layout: a compound table `t_allpar_new` with the jet columns among others.
// `source_row` says which made-up jet stands in each row.
template <class SourceRow>
void write_jets_hdf5(const std::string& path, int64_t rows, const SourceRow& source_row,
                     bool compressed = true) {
  constexpr size_t before = 5, after = 3;  // columns nobody asks for
  constexpr size_t columns = before + 16 + 5 + after;
  constexpr size_t row_bytes = columns * sizeof(float);
  const hid_t type = H5Tcreate(H5T_COMPOUND, row_bytes);
  size_t at = 0;
  const auto add = [&](const std::string& name) {
    H5Tinsert(type, name.c_str(), at, H5T_IEEE_F32LE);
    at += sizeof(float);
  };
  for (size_t i = 0; i < before; ++i) add("j_other" + std::to_string(i));
  for (const std::string& name : jet_feature_names()) add("j_" + name);
  for (const char* name : {"j_g", "j_q", "j_w", "j_z", "j_t"}) add(name);
  for (size_t i = 0; i < after; ++i) add("j_more" + std::to_string(i));
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const auto extent = static_cast<hsize_t>(rows);
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = std::min<hsize_t>(extent, 10000);
  H5Pset_chunk(creation, 1, &chunk);
  if (compressed) H5Pset_deflate(creation, 1);
  const hid_t table =
      H5Dcreate2(file, "t_allpar_new", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  std::vector<float> block(static_cast<size_t>(chunk) * columns);
  for (hsize_t first = 0; first < extent; first += chunk) {
    const hsize_t count = std::min(chunk, extent - first);
    std::fill(block.begin(), block.end(), 0.0f);
    for (hsize_t i = 0; i < count; ++i) {
      const JetRow jet = made_up_jet(source_row(static_cast<int64_t>(first + i)));
      float* row = &block[static_cast<size_t>(i) * columns];
      std::memcpy(row + before, jet.features, sizeof jet.features);
      row[before + 16 + static_cast<size_t>(jet.label)] = 1.0f;
    }
    const hid_t memory = H5Screate_simple(1, &count, nullptr);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &count, nullptr);
    H5Dwrite(table, type, memory, space, H5P_DEFAULT, block.data());
    H5Sclose(memory);
  }
  H5Dclose(table);
  H5Pclose(creation);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
}

// The later files' layout: a matrix `jets` and its `jetFeatureNames`.
inline void write_matrix_hdf5(const std::string& path, const std::vector<std::string>& names,
                              const std::vector<double>& values) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t extent[2] = {values.size() / names.size(), names.size()};
  const hid_t space = H5Screate_simple(2, extent, nullptr);
  const hid_t jets =
      H5Dcreate2(file, "jets", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(jets, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 32);
  const hsize_t count = names.size();
  const hid_t list = H5Screate_simple(1, &count, nullptr);
  const hid_t set =
      H5Dcreate2(file, "jetFeatureNames", text, list, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<char> fixed(32 * names.size());
  for (size_t i = 0; i < names.size(); ++i) names[i].copy(&fixed[32 * i], 31);
  H5Dwrite(set, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, fixed.data());
  H5Dclose(set);
  H5Sclose(list);
  H5Tclose(text);
  H5Dclose(jets);
  H5Sclose(space);
  H5Fclose(file);
}

}  // namespace mase::test

// SPDX-License-Identifier: Apache-2.0
// All input is hostile: sizes are checked before anything is allocated for them, and libpng reads
// from memory.
#include "mase/data/pictures.h"

#include <png.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/base/text.h"

namespace mase {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t largest_side = 4096;

void check_sides(const std::string& path, uint64_t width, uint64_t height) {
  if (width < 1 || height < 1 || width > largest_side || height > largest_side)
    throw Error(path, fmt::format("an image of {} x {} pixels", width, height),
                fmt::format("sides go from 1 to {}", largest_side));
}

Picture read_png(const std::string& path, const std::string& bytes) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()))
    throw Error(path, fmt::format("is no PNG: {}", printable(image.message)));
  struct Free {
    png_image* image;
    ~Free() { png_image_free(image); }
  } free_at_end{&image};
  check_sides(path, image.width, image.height);
  Picture picture;
  picture.channels = image.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
  picture.transparent = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  picture.height = image.height;
  picture.width = image.width;
  image.format = picture.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color black{0, 0, 0};  // behind what is transparent
  if (!png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr))
    throw Error(path, fmt::format("is no whole PNG: {}", printable(image.message)));
  return picture;
}

// P5 or P6, then width, height and 255 with white space and comments between, then the pixels.
Picture read_ppm(const std::string& path, const std::string& bytes) {
  size_t at = 2;
  const auto number = [&] {
    for (; at < bytes.size(); ++at) {
      if (bytes[at] == '#')
        while (at < bytes.size() && bytes[at] != '\n') ++at;
      else if (!std::isspace(static_cast<unsigned char>(bytes[at])))
        break;
    }
    uint64_t value = 0;
    const size_t first = at;
    while (at < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[at])) &&
           at - first < 9)
      value = value * 10 + static_cast<uint64_t>(bytes[at++] - '0');
    if (at == first) throw Error(path, "a number is missing in the header", "write it again");
    return value;
  };
  Picture picture;
  picture.channels = bytes[1] == '6' ? 3 : 1;
  const uint64_t width = number(), height = number(), most = number();
  check_sides(path, width, height);
  if (most != 255) throw Error(path, fmt::format("values up to {}", most), "up to 255 are read");
  ++at;  // one white space
  picture.width = static_cast<int64_t>(width);
  picture.height = static_cast<int64_t>(height);
  const size_t size = static_cast<size_t>(width * height) * static_cast<size_t>(picture.channels);
  if (bytes.size() < at + size) throw Error(path, "the file ends early", "write it again");
  picture.pixels.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
  return picture;
}

}  // namespace

bool is_picture(const std::string& path) {
  const std::string ending = lower_case(fs::path(path).extension().string());
  return ending == ".png" || ending == ".ppm" || ending == ".pgm";
}

std::vector<std::string> pictures_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<std::string> files = picture_files(path);
  if (files.empty())
    throw Error(path, "holds no pictures", ".png, .ppm and .pgm that lie in it are read");
  return files;
}

Picture read_picture(const std::string& path) {
  const std::string bytes = read_text_file(path);
  if (starts_with(bytes, "\x89PNG")) return read_png(path, bytes);
  if (starts_with(bytes, "P5") || starts_with(bytes, "P6")) return read_ppm(path, bytes);
  throw Error(path, "is neither a PNG nor a binary PPM or PGM", "convert it");
}

std::vector<std::string> picture_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && is_picture(entry.path().string()))
      paths.push_back(entry.path().string());
  }
  if (failure) throw Error(folder, failure.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool holds_pictures(const std::string& path) {
  std::error_code ignored;
  return is_picture(path) || fs::is_directory(path, ignored);
}

Shape pictures_shape(const std::string& path) {
  const std::vector<std::string> files = pictures_of(path);
  const Picture first = read_picture(files[0]);
  return {static_cast<int64_t>(files.size()), first.channels == 1 ? 0 : first.channels,
          first.height, first.width};
}

Tensor read_pictures(const std::string& path, const Shape& sample) {
  const std::vector<std::string> files = pictures_of(path);
  std::vector<float> pixels;  // grows with what is there
  for (const std::string& file : files) {
    const Picture picture = read_picture(file);
    if (sample.size() != 3 || picture.height != sample[1] || picture.width != sample[2] ||
        (picture.channels != 1 && picture.channels != sample[0]))
      throw Error(file,
                  fmt::format("is {} x {} pixels with {} channels, the network takes {}",
                              picture.width, picture.height, picture.channels, shape_text(sample)),
                  "convert it");
    const auto plane = picture.height * picture.width;
    for (int64_t c = 0; c < sample[0]; ++c)
      for (int64_t i = 0; i < plane; ++i)
        pixels.push_back(picture.pixels[static_cast<size_t>(i * picture.channels +
                                                            std::min(c, picture.channels - 1))]);
  }
  Shape shape = sample;
  shape.insert(shape.begin(), static_cast<int64_t>(files.size()));
  return Tensor::of(shape, pixels);
}

}  // namespace mase

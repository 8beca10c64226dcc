// SPDX-License-Identifier: Apache-2.0
// Folders of PNG, PPM and PGM files. All input is hostile: sizes are checked before anything is
// allocated for them, and libpng reads from memory.
#include <png.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "mase/data/prepare.h"

namespace mase {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t largest_side = 4096;
constexpr size_t most_pixels = size_t{1} << 31;  // of all images together

struct Picture {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;  // height, width, channels
};

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

bool is_picture(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return ending == ".png" || ending == ".ppm" || ending == ".pgm";
}

Picture read_picture(const std::string& path) {
  const std::string bytes = read_text_file(path);
  if (starts_with(bytes, "\x89PNG")) return read_png(path, bytes);
  if (starts_with(bytes, "P5") || starts_with(bytes, "P6")) return read_ppm(path, bytes);
  throw Error(path, "is neither a PNG nor a binary PPM or PGM", "convert it");
}

std::vector<std::string> sorted_entries(const fs::path& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    std::error_code ignored;
    if (folders ? entry.is_directory(ignored) && entry.path().filename().string()[0] != '.'
                : entry.is_regular_file(ignored) && is_picture(entry.path()))
      names.push_back(entry.path().filename().string());
  }
  if (failure) throw Error(folder.string(), failure.message());
  std::sort(names.begin(), names.end());
  return names;
}

// Channels first. A grey image among coloured ones has three equal channels.
void append(const std::string& path, const Picture& picture, ByteImages& images) {
  const Shape size = {images.sample.empty() ? picture.channels : images.sample[0], picture.height,
                      picture.width};
  if (images.sample.empty()) images.sample = size;
  if (images.sample != size || picture.channels > images.sample[0])
    throw Error(path,
                fmt::format("is {} x {} with {} channels, images before it are {}", picture.width,
                            picture.height, picture.channels, shape_text(images.sample)),
                "all images of a folder have one size; convert them");
  const auto plane = static_cast<size_t>(picture.height * picture.width);
  const auto own = static_cast<size_t>(picture.channels);
  if (images.pixels.size() + plane * static_cast<size_t>(size[0]) > most_pixels)
    throw Error(path, "the folder holds more than 2 GiB of pixels", "use fewer images");
  for (size_t c = 0; c < static_cast<size_t>(size[0]); ++c)
    for (size_t i = 0; i < plane; ++i)
      images.pixels.push_back(picture.pixels[i * own + std::min(c, own - 1)]);
}

bool has_colour(const fs::path& folder, const std::vector<std::string>& classes) {
  for (const std::string& name : classes)
    for (const std::string& file : sorted_entries(folder / name, false))
      if (read_picture((folder / name / file).string()).channels == 3) return true;
  return false;
}

ByteImages read_classes(const fs::path& folder, const std::vector<std::string>& classes,
                        bool colour) {
  ByteImages images;
  for (size_t label = 0; label < classes.size(); ++label)
    for (const std::string& file : sorted_entries(folder / classes[label], false)) {
      const std::string path = (folder / classes[label] / file).string();
      const Picture picture = read_picture(path);
      if (images.sample.empty() && colour) images.sample = {3, picture.height, picture.width};
      append(path, picture, images);
      images.labels.push_back(static_cast<int32_t>(label));
    }
  if (images.count() == 0)
    throw Error(folder.string(), "holds no images", "FOLDER/CLASS/*.png, .ppm or .pgm are read");
  return images;
}

}  // namespace

bool is_image_folder(const std::string& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return false;
  for (const std::string& name : sorted_entries(path, true)) {
    if (!sorted_entries(fs::path(path) / name, false).empty()) return true;
    for (const std::string& inner : sorted_entries(fs::path(path) / name, true))
      if (!sorted_entries(fs::path(path) / name / inner, false).empty()) return true;
  }
  return false;
}

Dataset load_image_folder(const std::string& folder, const DatasetOptions& options) {
  const fs::path root(folder);
  std::error_code ignored;
  const bool split =
      fs::is_directory(root / "train", ignored) && fs::is_directory(root / "test", ignored);
  const fs::path first = split ? root / "train" : root;
  const std::vector<std::string> classes = sorted_entries(first, true);
  if (classes.size() < 2)
    throw Error(folder, "holds fewer than two classes", "one folder for each class is wanted");
  std::string name = fs::absolute(root).lexically_normal().filename().string();
  if (name.empty()) name = fs::absolute(root).lexically_normal().parent_path().filename().string();
  const bool colour = has_colour(first, classes);
  ByteImages train = read_classes(first, classes, colour), test;
  if (split) {
    for (const std::string& other : sorted_entries(root / "test", true))
      if (std::find(classes.begin(), classes.end(), other) == classes.end())
        throw Error((root / "test" / other).string(), "is a class that train does not have");
    std::vector<std::string> known = classes;
    for (std::string& one : known)  // a class without test images is no mistake
      if (!fs::is_directory(root / "test" / one, ignored)) one.clear();
    test.sample = train.sample;
    for (size_t label = 0; label < known.size(); ++label) {
      if (known[label].empty()) continue;
      for (const std::string& file : sorted_entries(root / "test" / known[label], false)) {
        const std::string path = (root / "test" / known[label] / file).string();
        append(path, read_picture(path), test);
        test.labels.push_back(static_cast<int32_t>(label));
      }
    }
  } else {
    test = take_test_images(train, name);
  }
  return image_dataset(name, std::move(train), std::move(test), classes, options);
}

}  // namespace mase

namespace mase::image_folder_dataset {
namespace {

Schema options() {
  Schema schema = augmentation_options();
  schema.fields.insert(schema.fields.begin(),
                       {.name = "folder",
                        .type = FieldType::text,
                        .help = "the folder, with one folder for each class"});
  return schema;
}

const Register<DatasetRecord> registered{
    {.name = "images",
     .summary = "A folder of PNG, PPM or PGM files, one folder for each class",
     .help = "Reads FOLDER/train/CLASS/* and FOLDER/test/CLASS/*, or FOLDER/CLASS/*, of which a "
             "fifth becomes the test images. The folder's path alone is a data set too; by this "
             "name its images can be flipped and cropped.",
     .options = options(),
     .where = [](const DatasetOptions&) { return "--dataset-folder"; },
     .load =
         [](const DatasetOptions& given) {
           if (!given.arguments["folder"].is_string())
             throw Error("images", "no folder is named", "give --dataset-folder");
           return load_image_folder(given.arguments["folder"].as_string(), given);
         }}};

}  // namespace
}  // namespace mase::image_folder_dataset

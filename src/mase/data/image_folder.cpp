// SPDX-License-Identifier: Apache-2.0
// Folders of PNG, PPM and PGM files, one folder for each class.
#include <algorithm>
#include <filesystem>

#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "mase/data/pictures.h"
#include "mase/data/prepare.h"

namespace mase {
namespace {

namespace fs = std::filesystem;
constexpr size_t most_pixels = size_t{1} << 31;  // of all images together

std::vector<std::string> sorted_folders(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && entry.path().filename().string()[0] != '.')
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
    for (const std::string& path : picture_files((folder / name).string()))
      if (read_picture(path).channels == 3) return true;
  return false;
}

// Files beside the images, and images whose alpha channel is left out.
struct Unread {
  std::vector<std::string> files;
  size_t transparent = 0;

  void look_at(const fs::path& folder) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(folder, failure)) {
      std::error_code ignored;
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(ignored) && name[0] != '.' && !is_picture(name))
        files.push_back(name);
    }
    std::sort(files.begin(), files.end());
  }

  void tell(const std::string& folder, const DatasetOptions& options) const {
    if (!options.notify) return;
    if (!files.empty())
      options.notify(
          fmt::format("{}: {} not read, {}{}: .png, .ppm and .pgm are", printable(folder),
                      files.size() == 1 ? "a file is" : fmt::format("{} files are", files.size()),
                      printable(files[0]), files.size() > 1 ? ", ..." : ""));
    if (transparent > 0)
      options.notify(fmt::format(
          "{}: {} an alpha channel, which is left out: black lies behind", printable(folder),
          transparent == 1 ? "an image has" : fmt::format("{} images have", transparent)));
  }
};

ByteImages read_classes(const fs::path& folder, const std::vector<std::string>& classes,
                        bool colour, Unread& unread) {
  ByteImages images;
  for (size_t label = 0; label < classes.size(); ++label)
    for (const std::string& path : picture_files((folder / classes[label]).string())) {
      const Picture picture = read_picture(path);
      if (images.sample.empty() && colour) images.sample = {3, picture.height, picture.width};
      append(path, picture, images);
      unread.transparent += picture.transparent;
      images.labels.push_back(static_cast<int32_t>(label));
    }
  for (const std::string& name : classes) unread.look_at(folder / name);
  if (images.count() == 0)
    throw Error(folder.string(), "holds no images", "FOLDER/CLASS/*.png, .ppm or .pgm are read");
  return images;
}

}  // namespace

bool is_image_folder(const std::string& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return false;
  for (const std::string& name : sorted_folders(path)) {
    if (!picture_files((fs::path(path) / name).string()).empty()) return true;
    for (const std::string& inner : sorted_folders(fs::path(path) / name))
      if (!picture_files((fs::path(path) / name / inner).string()).empty()) return true;
  }
  return false;
}

Dataset load_image_folder(const std::string& folder, const DatasetOptions& options) {
  const fs::path root(folder);
  std::error_code ignored;
  const bool split =
      fs::is_directory(root / "train", ignored) && fs::is_directory(root / "test", ignored);
  const fs::path first = split ? root / "train" : root;
  const std::vector<std::string> classes = sorted_folders(first);
  if (classes.size() < 2)
    throw Error(folder, "holds fewer than two classes", "one folder for each class is wanted");
  std::string name = fs::absolute(root).lexically_normal().filename().string();
  if (name.empty()) name = fs::absolute(root).lexically_normal().parent_path().filename().string();
  const bool colour = has_colour(first, classes);
  Unread unread;
  ByteImages train = read_classes(first, classes, colour, unread), test;
  if (split) {
    for (const std::string& other : sorted_folders(root / "test"))
      if (std::find(classes.begin(), classes.end(), other) == classes.end())
        throw Error((root / "test" / other).string(), "is a class that train does not have");
    std::vector<std::string> known = classes;
    for (std::string& one : known)  // a class without test images is no mistake
      if (!fs::is_directory(root / "test" / one, ignored)) one.clear();
    test.sample = train.sample;
    for (size_t label = 0; label < known.size(); ++label) {
      if (known[label].empty()) continue;
      for (const std::string& path : picture_files((root / "test" / known[label]).string())) {
        const Picture picture = read_picture(path);
        append(path, picture, test);
        unread.transparent += picture.transparent;
        test.labels.push_back(static_cast<int32_t>(label));
      }
      unread.look_at(root / "test" / known[label]);
    }
  } else {
    test = take_test_images(train, name);
  }
  unread.tell(folder, options);
  return image_dataset(name, std::move(train), std::move(test), classes, options);
}

}  // namespace mase

namespace mase::image_folder_dataset {
namespace {

Schema options() {
  Schema schema = augmentation_options();
  schema.fields.insert(schema.fields.begin(),
                       text_field("folder", "the folder, with one folder for each class"));
  return schema;
}

const Register<DatasetRecord> registered{
    {.name = "images",
     .summary = "A folder of PNG, PPM or PGM files, one folder for each class",
     .help = "Reads FOLDER/train/CLASS/* and FOLDER/test/CLASS/*, or FOLDER/CLASS/*, of which a "
             "fifth becomes the test images. The folder's path may stand in the place of this "
             "name and --dataset-folder.",
     .options = options(),
     .where = [](const DatasetOptions&) { return "--dataset-folder"; },
     .load =
         [](const DatasetOptions& given) {
           if (!given.arguments["folder"].is_string())
             throw Error("images", "no folder is named", "give --dataset-folder");
           return load_image_folder(given.arguments["folder"].as_string(), given);
         },
     .path_option = "folder",
     .reads = is_image_folder}};

}  // namespace
}  // namespace mase::image_folder_dataset

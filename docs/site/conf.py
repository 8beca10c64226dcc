# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site (scripts/docs.sh). Everything is in the files: no fonts, scripts or
pictures from elsewhere, and the search works from disk."""
import os

project = "MASE"
author = "the authors of MASE"
copyright = "its authors, Apache-2.0"  # noqa: A001  (Sphinx's name)
version = release = os.environ.get("MASE_VERSION", "")

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
master_doc = "index"
exclude_patterns = ["screenshots/*.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "none"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"MASE {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it would be fetched, which browsers forbid from disk
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5fa7", "color-brand-content": "#1d5fa7"},
    "dark_css_variables": {"color-brand-primary": "#7fb5f0", "color-brand-content": "#7fb5f0"},
}
smartquotes = False

"""How Sphinx makes the site. Its sources are in ``build/docs/source``: see ``docs/build.py``."""

from docutils import nodes
from latex2mathml.converter import convert

from archimedes.version import __version__ as release

project = "Archimedes"
author = "The Archimedes developers"
copyright = f"{author}, Apache-2.0"
version = release
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
# Words in the types of parameters, such as "array", are names of several things.
suppress_warnings = ["ref.python"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "code"
highlight_language = "text"
pygments_style = "default"
pygments_dark_style = "monokai"
add_module_names = False
toc_object_entries = False
python_maximum_signature_line_length = 80

# Headings have anchors of their own, as where the pages are read in a repository.
myst_heading_anchors = 3
myst_enable_extensions = ["deflist", "attrs_block", "dollarmath"]
html_math_renderer = "mathml"

html_theme = "furo"
html_title = "Archimedes"
# Pages in 3-D that blocks save are shown in frames.
html_static_path = ["_static", "../build/pages/pictures"]
html_css_files = ["archimedes.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#8ab8f0", "color-brand-content": "#8ab8f0"},
}


def _write_equation(writer, node):
    """Write an equation as MathML, which browsers draw by themselves: pages work offline."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    writer.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app):
    """Register the renderer of equations."""
    app.add_html_math_renderer("mathml", (_write_equation, None), (_write_equation, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

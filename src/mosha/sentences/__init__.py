"""Every sentence that people read, by its code, in English and Chinese; `mosha.core.language` reads them."""

"""Running what skills ship and what models write: workspaces, scripts, shells, files, patches, installs."""

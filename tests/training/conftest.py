from pathlib import Path

import pytest

from outpace.training import prepare_environment

prepare_environment()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny import save_model

    return save_model(tmp_path_factory.mktemp("model") / "tiny")

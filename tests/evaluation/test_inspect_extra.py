import subprocess
import sys


def test_without_inspect_ai_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['inspect_ai'] = None\n"
        "from unreel.core.errors import MissingExtraError\n"
        "try:\n"
        "    import unreel.evaluation.inspect_task\n"
        "except MissingExtraError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "unreel[inspect]" in done.stdout

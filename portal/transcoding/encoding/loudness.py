"""Loudness of sound as EBU R128 measures it, and the gain that makes it even."""

from dataclasses import dataclass, fields

from portal.transcoding.encoding.ffmpeg import RunReport

# Filter that measures the sound which passes. Players play mono sound on two loudspeakers.
MEASURE = "ebur128=peak=true:dualmono=true:framelog=quiet"
# Integrated loudness that the filter reports of silence, and of sound shorter than 0.4 s.
_SILENCE_LUFS = -70.0
_MAX_RAISE_DB = 12.0
# Peaks that a gain may reach. Conversions after the player add a little to them.
_MAX_PEAK_DBTP = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loudness:
    """Integrated loudness, loudness range and true peak of the sound of a film."""

    integrated_lufs: float
    loudness_range_lu: float
    true_peak_dbtp: float

    @classmethod
    def measured(cls, report: RunReport) -> "Loudness | None":
        """Return what `MEASURE` has measured in a run; None for silence and very short sound."""
        figures = report.loudness
        integrated_lufs = figures.get("I", _SILENCE_LUFS)
        if not integrated_lufs > _SILENCE_LUFS:
            return None
        return cls(
            integrated_lufs=integrated_lufs,
            loudness_range_lu=figures["LRA"],
            true_peak_dbtp=figures["Peak"],
        )

    def gain_db(self, target_lufs: float) -> float:
        """Return the gain towards a loudness: at most 12 dB, and no peaks above -1 dBTP.

        Sound whose peaks are above that already is not raised, but quiet sound is not lowered.
        """
        headroom_db = max(0.0, _MAX_PEAK_DBTP - self.true_peak_dbtp)
        gain_db = min(target_lufs - self.integrated_lufs, headroom_db, _MAX_RAISE_DB)
        return round(gain_db, 1)


# Columns of a version with these figures.
LOUDNESS_COLUMNS = tuple(field.name for field in fields(Loudness))

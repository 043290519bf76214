/** Does Docker answer, and can it be worked with? */
import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'

export type DockerReading = {
  /** `docker://20.10.24`, as it last reported; undefined when it never answered. */
  readonly version: string | undefined
  /** Undefined: it answered when it was last asked. */
  readonly silence: DockerSilence | undefined
}

export type DockerSilence = {
  readonly sinceMs: number
  /** `refuses`: nothing listens. `hangs`: the request is accepted, and not answered. */
  readonly kind: 'refuses' | 'hangs'
}

/** A daemon that is restarted is away for a moment; one on a busy card takes some seconds for an answer. */
const patienceMs = { refuses: 5_000, hangs: 8_000 }
/** The first that supports cgroup v2, which everything but old Raspberry Pi OS has. */
const oldest = { major: 20, minor: 10 }

export function dockerHealth({ version, silence }: DockerReading): HealthFinding | undefined {
  if (silence !== undefined && silence.sinceMs >= patienceMs[silence.kind]) {
    return silence.kind === 'hangs'
      ? wrong(
          'DockerHangs',
          'Docker accepts requests and does not answer',
          "See 'journalctl -u docker'; if the disk has no errors, 'systemctl restart docker' helps",
        )
      : wrong('DockerDown', 'Docker is not running', "See 'systemctl status docker' and 'journalctl -u docker'")
  }
  const [written = '', ...numbers] = /(\d+)\.(\d+)/.exec(version ?? '') ?? []
  const [major, minor] = numbers.map(Number)
  if (major === undefined || minor === undefined) return undefined
  if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
    return wrong('DockerTooOld', `Docker ${written} is too old`, `Install ${oldest.major}.${oldest.minor} or newer`)
  }
  return fine('DockerAnswers', `Docker ${written} answers`)
}

export const dockerCheck: ConditionCheck<{ docker(): DockerReading | Promise<DockerReading> }> = {
  type: 'DockerUnhealthy',
  name: 'docker',
  unknown: 'Docker does not report its version',
  periodMs: 5 * seconds,
  holdMs: 5 * seconds,
  look: async (source) => dockerHealth(await source.docker()),
}

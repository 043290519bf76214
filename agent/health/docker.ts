/** Checks that Docker answers and that its version is supported. */
import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'

export type DockerReading = {
  /** `docker://20.10.24`, as last reported; undefined when it never answered. */
  readonly version: string | undefined
  /** Undefined: the last request was answered. */
  readonly silence: DockerSilence | undefined
}

export type DockerSilence = {
  readonly sinceMs: number
  /** `refuses`: nothing listens. `hangs`: the request is accepted, and not answered. */
  readonly kind: 'refuses' | 'hangs'
}

/** A Docker that is restarted is away for a moment; on a slow card an answer takes some seconds. */
const patienceMs = { refuses: 5_000, hangs: 8_000 }
/** The first version that supports cgroup v2, which all systems but old releases of Raspberry Pi OS use. */
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

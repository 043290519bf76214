/** Checks that Docker answers and that its version is supported. */

import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'
import { brokenFile } from './docker-start.ts'

export type DockerReading = {
  /** `docker://20.10.24`, as last reported; undefined when it never answered. */
  readonly version: string | undefined
  /** Undefined: the last request was answered. */
  readonly silence: DockerSilence | undefined
  /** Where its files are, if it ever reported that. */
  readonly rootDirectory?: string | undefined
  /** The end of its log, the newest line last. Read only where Docker is down. */
  readonly lastLines?: () => Promise<readonly string[]>
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

export function dockerHealth(
  { version, silence, rootDirectory }: DockerReading,
  lastLines: readonly string[] = [],
): HealthFinding | undefined {
  if (silence !== undefined && isLong(silence)) {
    const broken = silence.kind === 'hangs' ? undefined : brokenFile(lastLines, rootDirectory)
    if (broken !== undefined) {
      const { path, problem, remedy } = broken
      return wrong('DockerDown', `Docker does not start because of ${path}: ${problem}`, remedy)
    }
    return silence.kind === 'hangs'
      ? wrong(
          'DockerHangs',
          'Docker accepts requests and does not answer',
          "See 'journalctl -u docker'; if the disk has no errors, 'systemctl restart docker' helps",
        )
      : wrong('DockerDown', dockerNotRunning, "See 'systemctl status docker' and 'journalctl -u docker'")
  }
  const [written = '', ...numbers] = /(\d+)\.(\d+)/.exec(version ?? '') ?? []
  const [major, minor] = numbers.map(Number)
  if (major === undefined || minor === undefined) return undefined
  if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
    return wrong('DockerTooOld', `Docker ${written} is too old`, `Install ${oldest.major}.${oldest.minor} or newer`)
  }
  return fine('DockerAnswers', `Docker ${written} answers`)
}

function isLong({ kind, sinceMs }: DockerSilence): boolean {
  return sinceMs >= patienceMs[kind]
}

/** Whether docker.service listens at this socket. */
export function isSystemDocker(socketPath: string): boolean {
  return ['/var/run/docker.sock', '/run/docker.sock'].includes(socketPath)
}

/** What is found of a Docker that is down for no known reason. */
export const dockerNotRunning = 'Docker is not running'

export const dockerCheck: ConditionCheck<{ docker(): DockerReading | Promise<DockerReading> }> = {
  type: 'DockerUnhealthy',
  name: 'docker',
  unknown: 'Docker does not report its version',
  periodMs: 5 * seconds,
  holdMs: 5 * seconds,
  look: async (source) => {
    const reading = await source.docker()
    const { silence, lastLines } = reading
    const isDown = silence?.kind === 'refuses' && isLong(silence)
    return dockerHealth(reading, isDown ? await lastLines?.() : [])
  },
}

/** Checks that Docker answers and that its version is supported, and finds the file that keeps it from starting. */

import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'

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
          'Docker accepts requests but does not answer',
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

/** A file of Docker that dockerd cannot read. It names some of them only by the part that they belong to. */
export type BrokenFile = {
  readonly path: string
  /** As dockerd reports it. */
  readonly problem: string
  readonly remedy: string
}

const mostProblem = 300
const again = "then 'systemctl restart docker'"
const moved = (path: string, loss: string) => `Move it away ('mv ${path} ${path}.broken'), ${again}; ${loss}`

/** Errors of bbolt for a damaged file (its errors.go). A timeout is another one: another program has the file open. */
const isBroken = '(?:invalid database|version mismatch|checksum error|file size too small|EOF)'

/** Lines of dockerd 20.10 and later, and the file that each is about; `root` is Docker's root directory. */
const causes: readonly {
  readonly line: RegExp
  readonly fileOf: (root: string, named: string | undefined) => string
  readonly remedyOf: (path: string) => string
}[] = [
  {
    line: /unable to configure the Docker daemon with file (\S+): /i,
    fileOf: (_, named = '/etc/docker/daemon.json') => named,
    remedyOf: () => `Correct it ('dockerd --validate' checks it from version 23 on), ${again}`,
  },
  {
    line: new RegExp(`network controller: .*${isBroken}`, 'i'),
    fileOf: (root) => `${root}/network/files/local-kv.db`,
    remedyOf: (path) => moved(path, 'Docker and the agent make their networks again'),
  },
  {
    line: new RegExp(`volume store metadata database: .*${isBroken}`, 'i'),
    fileOf: (root) => `${root}/volumes/metadata.db`,
    remedyOf: (path) => moved(path, 'the files of volumes stay, their labels and options do not'),
  },
  {
    line: /create reference store repository: .*(?:EOF|invalid character|end of JSON)/i,
    fileOf: (root) => `${root}/image/overlay2/repositories.json`,
    remedyOf: (path) => moved(path, 'images lose their names and are pulled again'),
  },
  {
    line: new RegExp(`failed to open database file (\\S+): .*${isBroken}`, 'i'),
    fileOf: (_, named = '') => named,
    remedyOf: (path) => moved(path, 'the cache of builds is lost'),
  },
]

/** `lines`: the end of dockerd's log, the newest last. Undefined: its last failure names no file. */
export function brokenFile(lines: readonly string[], rootDirectory = '/var/lib/docker'): BrokenFile | undefined {
  for (const line of [...lines].reverse()) {
    for (const { line: pattern, fileOf, remedyOf } of causes) {
      const match = pattern.exec(line)
      if (match === null) continue
      const path = fileOf(rootDirectory, match[1])
      const problem = line.slice(match.index).slice(0, mostProblem).trim()
      return { path, problem, remedy: remedyOf(path) }
    }
    // The failure of the last start is in its last line. What is older has been put right.
    if (/failed to start daemon|unable to configure|has completed initialization/i.test(line)) return undefined
  }
  return undefined
}

/** Why dockerd does not start: it names a broken file of its own in the last line of its log, in words that name its part only. */

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

/** Checks of the agent's own files: they exist, only their owner can read them, and their content is valid. */
import { type DoctorFinding, type Fix, ok, problem, warning } from './doctor-finding.ts'

export type FileReading = { readonly path: string; readonly mode: number }

export type AgentFiles = {
  readonly dataDirectory: FileReading | undefined
  /** The data directory is writable. Undefined when the doctor does not run as root, or inspects a saved tree. */
  readonly isWritable: boolean | undefined
  /** `identity.json`. */
  readonly identity: FileReading | undefined
  readonly dataPath: string
}

/** For the owner only. */
const others = 0o077

export function agentFilesFindings({
  dataDirectory,
  isWritable,
  identity,
  dataPath,
}: AgentFiles): readonly DoctorFinding[] {
  if (dataDirectory === undefined) {
    return [ok('data-directory', `There is no ${dataPath} yet; joining makes it`)]
  }
  const findings = [rights('data-directory', dataDirectory, 0o700)]
  if (isWritable === false) {
    const remedy =
      'See the finding about filesystems; if it reports no problem, check the owner and the mount of this folder'
    findings[0] = problem('data-directory', `${dataPath} cannot be written to`, remedy)
  }
  return identity === undefined ? findings : [...findings, rights('identity-file', identity, 0o600)]
}

function rights(check: string, { path, mode }: FileReading, wanted: number): DoctorFinding {
  if ((mode & others) === 0) return ok(check, `${path} is accessible to its owner only`)
  const octal = wanted.toString(8)
  const fix: Fix = {
    summary: `Set the mode of ${path} to ${octal} (it is ${(mode & 0o7777).toString(8)})`,
    steps: [{ kind: 'mode', path, mode: wanted }],
    needsRestart: false,
  }
  const found = `${path} is accessible to others than its owner (mode ${(mode & 0o7777).toString(8)})`
  const remedy = `Run 'chmod ${octal} ${path}'`
  // The key is sufficient to impersonate this node.
  return check === 'identity-file' ? problem(check, found, remedy, { fix }) : warning(check, found, remedy, { fix })
}

/** `trouble`: the problem in the file, in the words that the agent logs when it starts. */
export function configurationFinding(path: string | undefined, trouble: string | undefined): DoctorFinding {
  const check = 'configuration'
  if (trouble !== undefined) return problem(check, trouble, 'Correct the file: docs/configuration.md lists every field')
  return path === undefined
    ? ok(check, 'There is no configuration file: the defaults apply')
    : ok(check, `${path} is valid`)
}

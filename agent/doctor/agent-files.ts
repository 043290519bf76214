/** The agent's own files: are they there, for it alone, and of use? */
import { type DoctorFinding, type Fix, ok, problem, warning } from './doctor-finding.ts'

export type FileReading = { readonly path: string; readonly mode: number }

export type AgentFiles = {
  readonly dataDirectory: FileReading | undefined
  /** May we write to it? Undefined when not run as root, or on a saved tree. */
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
    const remedy = 'Look at the finding about filesystems; if it is well, see who owns it and how it is mounted'
    findings[0] = problem('data-directory', `${dataPath} cannot be written to`, remedy)
  }
  return identity === undefined ? findings : [...findings, rights('identity-file', identity, 0o600)]
}

function rights(check: string, { path, mode }: FileReading, wanted: number): DoctorFinding {
  if ((mode & others) === 0) return ok(check, `${path} is for its owner alone`)
  const octal = wanted.toString(8)
  const fix: Fix = {
    summary: `Set the mode of ${path} to ${octal} (it is ${(mode & 0o7777).toString(8)})`,
    steps: [{ kind: 'mode', path, mode: wanted }],
    needsRestart: false,
  }
  const found = `${path} is open to others than its owner (mode ${(mode & 0o7777).toString(8)})`
  const remedy = `Run 'chmod ${octal} ${path}'`
  // The key in it is all that another needs to be this node.
  return check === 'identity-file' ? problem(check, found, remedy, { fix }) : warning(check, found, remedy, { fix })
}

/** `trouble`: what is wrong with it, as the agent reports it when it starts. */
export function configurationFinding(path: string | undefined, trouble: string | undefined): DoctorFinding {
  const check = 'configuration'
  if (trouble !== undefined) return problem(check, trouble, 'Correct the file: docs/configuration.md lists every field')
  return path === undefined
    ? ok(check, 'There is no configuration file, so the defaults hold')
    : ok(check, `${path} is valid`)
}

/** `bramble-certs`: look at certificates, and issue them by hand. */
import { X509Certificate } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { nodeIdentity, nodeNameOf } from '../api/identity.ts'
import { certificatesIn } from '../api/text/pem.ts'
import { type Authority, dayMs, openAuthority } from './authority.ts'
import { caHash } from './ca-hash.ts'
import { describeCertificate } from './describe.ts'
import { createOnce, readIfThere, replaceWhole } from './files.ts'
import { type Issued, issueAdmin, issueNode, issueServer } from './issue.ts'
import { kubeconfigText } from './kubeconfig.ts'

export type CertsCommandNeeds = {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly nowMs: () => number
}

/** What was typed cannot be done as it stands. */
class UsageError extends Error {}
const usageError = 64 // EX_USAGE of sysexits.h

/** The exit code. Never rejects for what was typed or for what the files hold. */
export async function certsCommand(argv: readonly string[], needs: CertsCommandNeeds): Promise<number> {
  try {
    needs.stdout(await answer(argv, needs))
    return 0
  } catch (error) {
    const mistyped = error instanceof UsageError
    needs.stderr(`${storyOf(error)}\n${mistyped ? "Try 'bramble-certs --help'.\n" : ''}`)
    return mistyped ? usageError : 1
  }
}

async function answer(argv: readonly string[], needs: CertsCommandNeeds): Promise<string> {
  const { values, positionals } = read(argv)
  if (values.help) return help
  const [verb, ...subjects] = positionals
  switch (verb) {
    case 'show':
      return show(only(subjects, 'show FILE|FOLDER'), needs.nowMs())
    case 'hash':
      return hash(only(subjects, 'hash FILE|FOLDER'))
    case 'authority':
      return authority(only(subjects, 'authority FOLDER'), needs)
    case 'issue':
      return issueByHand(subjects, values, needs)
    default:
      throw new UsageError(
        verb === undefined ? 'A command is missing: show, hash, authority or issue' : `Unknown command: ${verb}`,
      )
  }
}

function read(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        authority: { type: 'string' },
        out: { type: 'string' },
        server: { type: 'string' },
        days: { type: 'string' },
        force: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (cause) {
    throw new UsageError(storyOf(cause))
  }
}

function only(subjects: readonly string[], form: string): string {
  const [subject, ...more] = subjects
  if (subject === undefined || more.length > 0) throw new UsageError(`The form is: bramble-certs ${form}`)
  return subject
}

async function show(path: string, nowMs: number): Promise<string> {
  const found = await certificatesAt(path)
  if (found.length === 0) throw new Error(`There is no certificate in ${path}`)
  return found
    .map(({ file, certificate }) => {
      const lines = describeCertificate(certificate, nowMs).map(([name, value]) => `  ${name.padEnd(8)} ${value}`)
      return [file, ...lines, ''].join('\n')
    })
    .join('\n')
}

async function hash(path: string): Promise<string> {
  const found = await certificatesAt(path)
  const [authority] = found.filter(({ certificate }) => certificate.ca)
  if (authority === undefined) throw new Error(`There is no authority's certificate in ${path}`)
  return `${caHash(authority.certificate)}\n`
}

async function authority(folder: string, { nowMs, stderr }: CertsCommandNeeds): Promise<string> {
  const opened = await openAuthority(folder, nowMs())
  for (const path of opened.tightened) stderr(`Others could read ${path}; now they cannot\n`)
  const what = opened.created ? 'A new authority was made in' : 'There is an authority in'
  return `${what} ${folder}\n${await show(join(folder, 'ca.crt'), nowMs())}`
}

type IssueOptions = ReturnType<typeof read>['values']

async function issueByHand(
  [kind, ...names]: readonly string[],
  options: IssueOptions,
  { nowMs }: CertsCommandNeeds,
): Promise<string> {
  const { out, server, days, force } = options
  if (out === undefined || options.authority === undefined)
    throw new UsageError('Give --authority FOLDER and --out FOLDER')
  const life = days === undefined ? {} : { lifeMs: lifeOf(days) }
  const terms = { nowMs: nowMs(), ...life }
  if (kind !== 'server' && kind !== 'admin' && kind !== 'node')
    throw new UsageError('Issue what? server, admin or node')
  if (kind === 'server' && names.length === 0) throw new UsageError('Give the names and addresses of the server')
  if (kind === 'node' && nodeNameOf(nodeIdentity(names[0] ?? '').user) === undefined) {
    throw new UsageError(`Not a name that a node can have: ${JSON.stringify(names[0] ?? '')}`)
  }
  if ((kind === 'node' && names.length > 1) || (kind === 'admin' && names.length > 0)) {
    throw new UsageError(`Not understood: ${names.slice(kind === 'node' ? 1 : 0).join(' ')}`)
  }
  if ((await readIfThere(join(options.authority, 'ca.crt'))) === undefined) {
    throw new Error(`There is no authority in ${options.authority}: 'bramble-certs authority FOLDER' makes one`)
  }
  const ca = await openAuthority(options.authority, terms.nowMs)
  switch (kind) {
    case 'server': {
      const issued = issueServer(ca, { names, ...terms })
      // A server shows its authority too: that is how a joining machine checks the hash.
      return place(out, 'server', { ...issued, certificate: issued.certificate + ca.certificate }, ca, force)
    }
    case 'node':
      return place(out, names[0] ?? '', issueNode(ca, { nodeName: names[0] ?? '', ...terms }), ca, force)
    case 'admin': {
      const issued = issueAdmin(ca, terms)
      const placed = await place(out, 'admin', issued, ca, force)
      if (server === undefined) return placed
      const path = join(out, 'kubeconfig')
      await write(path, kubeconfigText({ server, ca: ca.certificate, ...issued }), 0o600, force)
      return `${placed}${path}\n`
    }
  }
}

function lifeOf(days: string): number {
  if (!/^[1-9]\d{0,4}$/.test(days)) throw new UsageError(`--days must be a whole number from 1 on, not ${days}`)
  return Number(days) * dayMs
}

/** Writes the pair and the authority's certificate; the paths it wrote, a line each. */
async function place(out: string, name: string, issued: Issued, ca: Authority, force: boolean): Promise<string> {
  await mkdir(out, { recursive: true, mode: 0o700 })
  const paths = { key: join(out, `${name}.key`), certificate: join(out, `${name}.crt`), ca: join(out, 'ca.crt') }
  await write(paths.key, issued.key, 0o600, force)
  await write(paths.certificate, issued.certificate, 0o644, force)
  await replaceWhole(paths.ca, ca.certificate, 0o644)
  return `${paths.key}\n${paths.certificate}\n${paths.ca}\n`
}

async function write(path: string, content: string, mode: number, force: boolean): Promise<void> {
  if (force) return replaceWhole(path, content, mode)
  if (await createOnce(path, content, mode)) return
  throw new Error(`${path} is there already: --force replaces it`)
}

type Found = { readonly file: string; readonly certificate: X509Certificate }

/** Every certificate in the file, or in the folder's files, also inside JSON. */
async function certificatesAt(path: string): Promise<readonly Found[]> {
  const isFolder = (await statOf(path)).isDirectory()
  const files = isFolder ? (await readdir(path)).filter((name) => /\.(crt|pem|cer|json)$/.test(name)).sort() : ['']
  const found = await Promise.all(files.map((name) => certificatesInFile(name === '' ? path : join(path, name))))
  return found.flat()
}

async function certificatesInFile(file: string): Promise<readonly Found[]> {
  const text = ((await readIfThere(file)) ?? '').replaceAll('\\n', '\n')
  return certificatesIn(text).map((one) => {
    try {
      return { file, certificate: new X509Certificate(one) }
    } catch (cause) {
      throw new Error(`A certificate in ${basename(file)} cannot be read`, { cause })
    }
  })
}

async function statOf(path: string) {
  try {
    return await stat(path)
  } catch (cause) {
    throw new Error(`Cannot read ${path}`, { cause })
  }
}

function storyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${storyOf(error.cause)}`
}

const help = `Usage: bramble-certs show FILE|FOLDER
       bramble-certs hash FILE|FOLDER
       bramble-certs authority FOLDER
       bramble-certs issue server NAME... --authority FOLDER --out FOLDER
       bramble-certs issue admin [--server URL] --authority FOLDER --out FOLDER
       bramble-certs issue node NAME --authority FOLDER --out FOLDER

  show        subject, issuer, names, dates, days left and hash of every certificate found
  hash        the hash of the authority, for --ca-hash of a joining machine
  authority   opens the authority in the folder, or makes one there
  issue       a certificate and its key: NAME.crt, NAME.key (0600) and ca.crt; with --server a kubeconfig too

  --authority FOLDER   where ca.crt and ca.key are
  --out FOLDER         where to write
  --server URL         the API's address, for the kubeconfig
  --days N             how long it is good for (a year; servers five)
  --force              replace files that are there
  --help               this text
`

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = await certsCommand(process.argv.slice(2), {
    stdout: (text) => process.stdout.write(text),
    stderr: (text) => process.stderr.write(text),
    nowMs: Date.now,
  })
}

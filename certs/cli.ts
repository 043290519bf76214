/** `bramble-certs`: prints certificates, and issues them by hand. */
import { X509Certificate } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeIdentity, nodeNameOf } from '../api/identity.ts'
import { certificatesIn } from '../api/text/pem.ts'
import type { Command } from '../daemon/process/command.ts'
import { type PrintText, printText, readArguments, refuse, type Values } from '../daemon/process/command-line.ts'
import { bashCompletion } from '../daemon/process/completion.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { version } from '../daemon/process/version.ts'
import { type Authority, dayMs, openAuthority } from './authority.ts'
import { caHash } from './ca-hash.ts'
import { certsCommands, certsProgram } from './command-table.ts'
import { describeCertificate } from './describe.ts'
import { createOnce, readIfThere, replaceWhole } from './files.ts'
import { type Issued, issueAdmin, issueNode, issueServer } from './issue.ts'
import { kubeconfigText } from './kubeconfig.ts'

export type CertsCommandNeeds = {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly nowMs: () => number
}

/** The exit code. Never rejects for what was typed or for what the files hold. */
export async function certsCommand(argv: readonly string[], needs: CertsCommandNeeds): Promise<number> {
  try {
    const result = await answer(argv, needs)
    if (typeof result !== 'string') return printText(result, needs)
    needs.stdout(result)
    return exitCode.fine
  } catch (error) {
    needs.stderr(`${storyOf(error)}\n`)
    return exitCode.failed
  }
}

async function answer(argv: readonly string[], needs: CertsCommandNeeds): Promise<string | PrintText> {
  const [first, ...rest] = argv
  switch (first) {
    case 'show':
      return withPath(certsCommands.show, rest, (path) => show(path, needs.nowMs()))
    case 'hash':
      return withPath(certsCommands.hash, rest, hash)
    case 'authority':
      return withPath(certsCommands.authority, rest, (folder) => authority(folder, needs))
    case 'issue': {
      const read = readArguments(certsCommands.issue, rest)
      return read.want === 'act' ? issueByHand(read.form, read.args, read.values, needs) : read
    }
    case 'completion': {
      const read = readArguments<Command['options'], Command['forms']>(certsCommands.completion, rest)
      return read.want === 'act' ? bashCompletion(certsProgram) : read
    }
    default: {
      const read = readArguments(certsProgram, first === 'help' ? ['--help'] : argv)
      if (read.want !== 'act') return read
      if (read.values.version) return `bramble-certs ${version}\n`
      return refuse(certsProgram, `Missing argument: use ${Object.keys(certsCommands).join(', ')}`)
    }
  }
}

async function withPath(
  row: Command,
  argv: readonly string[],
  act: (path: string) => Promise<string>,
): Promise<string | PrintText> {
  const read = readArguments(row, argv)
  if (read.want !== 'act') return read
  const [path, ...more] = read.args
  if (path === undefined || more.length > 0) return refuse(row, 'Missing argument: use one FILE or FOLDER')
  return act(path)
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

type IssueForm = keyof typeof certsCommands.issue.forms
type IssueOptions = Values<typeof certsCommands.issue.options>

async function issueByHand(
  form: IssueForm,
  names: readonly string[],
  options: IssueOptions,
  { nowMs }: CertsCommandNeeds,
): Promise<string | PrintText> {
  const { out, server, days, force } = options
  if (out === undefined || options.authority === undefined) {
    return refuse(certsCommands.issue, 'Missing option: --authority FOLDER and --out FOLDER are required')
  }
  const terms = { nowMs: nowMs(), ...(days === undefined ? {} : { lifeMs: days * dayMs }) }
  const [name = ''] = names
  if (form === 'node NAME' && nodeNameOf(nodeIdentity(name).user) === undefined) {
    return refuse(certsCommands.issue, `Invalid node name ${JSON.stringify(name)}`)
  }
  if ((await readIfThere(join(options.authority, 'ca.crt'))) === undefined) {
    throw new Error(`There is no authority in ${options.authority}: 'bramble-certs authority FOLDER' makes one`)
  }
  const ca = await openAuthority(options.authority, terms.nowMs)
  switch (form) {
    case 'server NAME...': {
      const issued = issueServer(ca, { names, ...terms })
      // A server shows its authority too: that is how a joining machine checks the hash.
      return place(out, 'server', { ...issued, certificate: issued.certificate + ca.certificate }, ca, force)
    }
    case 'node NAME':
      return place(out, name, issueNode(ca, { nodeName: name, ...terms }), ca, force)
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
  throw new Error(`${path} exists; --force replaces it`)
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

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = await certsCommand(process.argv.slice(2), {
    stdout: (text) => process.stdout.write(text),
    stderr: (text) => process.stderr.write(text),
    nowMs: Date.now,
  })
}

/** Makes releases that bramble-update installs, of Debian packages, and signs them. */
import { execFileSync } from 'node:child_process'
import { createHash, createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { Command } from '../daemon/process/command.ts'
import { printText, readArguments } from '../daemon/process/command-line.ts'
import { readSignatureKey, signatureKeyText, signFile } from '../daemon/updates/minisign.ts'
import { releaseArchive } from '../daemon/updates/release-archive.ts'
import type { ReleaseManifest } from '../daemon/updates/release-manifest.ts'

const row = {
  name: 'node dist/scripts/release.js',
  about: 'makes releases of the agent and of the controller',
  text: `Make a release of the packages DEB of one program and one version, one for each architecture: archives, release.json, and a signature of it by each key.
'keys' makes a key and writes release-keys.json, for build-packages.sh --release-keys or /etc/bramble/release-keys.json.
minisign -Vm release.json -x release.json.ID.minisig -p ID.pub checks a signature.`,
  forms: { keys: '', 'release DEB...': '' },
  options: {
    out: { value: 'DIR', help: 'where the files go', default: 'dist/release' },
    key: { value: 'FILE', help: 'private key (Ed25519, PEM), as "keys" writes it', repeated: true },
    sequence: { value: 'N', help: 'in place of that of the package', range: [1, 2 ** 40] },
    floor: { value: 'N', help: 'least sequence of a version that it can follow', range: [1, 2 ** 40] },
  },
} as const satisfies Command

/** What starts and judges versions is only in the package. */
const onlyInPackage = [
  'start',
  'prepare',
  'has-joined',
  'bramble-update',
  'bramble-update.mjs',
  'bramble-controller-update',
  'bramble-controller-update.mjs',
  'release.json',
  'release-keys.json',
]

function main(): number {
  const line = readArguments(row, process.argv.slice(2))
  if (line.want !== 'act')
    return printText(line, {
      stdout: (text) => void process.stdout.write(text),
      stderr: (text) => void process.stderr.write(text),
    })
  const { values, form, args } = line
  mkdirSync(values.out, { recursive: true })
  if (form === 'keys') makeKey(values.out)
  else makeRelease(values, args)
  return 0
}

function makeKey(out: string): void {
  const { privateKey } = generateKeyPairSync('ed25519')
  const written = signatureKeyText(privateKey)
  const id = readSignatureKey(written)?.id ?? ''
  const path = join(out, `${id}.pem`)
  writeFileSync(path, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600, flag: 'wx' })
  writeFileSync(join(out, `${id}.pub`), written)
  writeFileSync(join(out, 'release-keys.json'), `${JSON.stringify({ threshold: 1, keys: [written] }, null, 2)}\n`)
  console.log(path)
}

type Asked = {
  readonly out: string
  readonly key: readonly string[]
  readonly sequence: number | undefined
  readonly floor: number | undefined
}

function makeRelease({ out, key, sequence, floor = 1 }: Asked, packages: readonly string[]): void {
  if (key.length === 0) throw new Error('Give at least one --key')
  const made = packages.map((path) => archiveOf(path, out))
  const [first] = made
  if (
    first === undefined ||
    made.some(({ version, program }) => version !== first.version || program !== first.program)
  )
    throw new Error('The packages have different versions, or are of different programs')
  const manifest: ReleaseManifest = {
    format: 1,
    program: first.program,
    version: first.version,
    sequence: sequence ?? first.sequence,
    floor,
    runtime: first.runtime,
    ...(first.storeFormats && { storeFormats: first.storeFormats }),
    archives: Object.fromEntries(made.map(({ arch, size, sha256 }) => [arch, { size, sha256 }])),
  }
  const file = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
  writeFileSync(join(out, 'release.json'), file)
  for (const path of key) {
    const privateKey = createPrivateKey(readFileSync(path))
    const id = readSignatureKey(signatureKeyText(privateKey))?.id ?? ''
    const trusted = `${manifest.program} ${manifest.version} sequence ${manifest.sequence}`
    writeFileSync(join(out, `release.json.${id}.minisig`), signFile(file, privateKey, trusted))
  }
}

function archiveOf(path: string, out: string) {
  const folder = mkdtempSync(join(tmpdir(), 'bramble-release-'))
  try {
    execFileSync('dpkg-deb', ['--extract', path, folder])
    const arch = execFileSync('dpkg-deb', ['--field', path, 'Architecture'], { encoding: 'utf8' }).trim()
    const program = execFileSync('dpkg-deb', ['--field', path, 'Package'], { encoding: 'utf8' }).trim()
    const library = join(folder, 'usr/lib', program)
    const { version, sequence, storeFormats } = JSON.parse(readFileSync(join(library, 'release.json'), 'utf8')) as {
      version: string
      sequence: number
      storeFormats?: number[]
    }
    const files = readdirSync(library, { recursive: true, encoding: 'utf8' })
      .filter((name) => !onlyInPackage.includes(name) && statSync(join(library, name)).isFile())
      .map((name) => ({
        path: relative('.', name),
        content: readFileSync(join(library, name)),
        isProgram: (statSync(join(library, name)).mode & 0o100) !== 0,
      }))
    const archive = releaseArchive(files)
    const name = join(out, `${program}_${version}_${arch}.tar`)
    writeFileSync(name, archive)
    chmodSync(name, 0o644)
    console.log(name)
    const runtime = readFileSync(join(library, 'runtime'), 'utf8').trim()
    return {
      program,
      version,
      sequence,
      storeFormats,
      arch,
      runtime,
      size: archive.length,
      sha256: createHash('sha256').update(archive).digest('hex'),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

process.exit(main())

/** Makes releases that bramble-update installs, of Debian packages, and signs them. */
import { execFileSync } from 'node:child_process'
import { createHash, createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { Command } from '../daemon/process/command.ts'
import { printText, readArguments } from '../daemon/process/command-line.ts'
import { readSignatureKey, signatureKeyText, signFile } from '../daemon/updates/minisign.ts'
import { onlyInPackage } from '../daemon/updates/package-files.ts'
import { releaseArchive } from '../daemon/updates/release-archive.ts'
import { largestManifest, type ReleaseManifest } from '../daemon/updates/release-manifest.ts'
import { archivesOfRelease, writeDeltas } from './release-deltas.ts'

const row = {
  name: 'node dist/scripts/release.js',
  about: 'makes releases of the agent and of the controller',
  text: `Make a release of the packages DEB of one program and one version, one for each architecture: archives, release.json, and a signature of it by each key.
Each archive is there compressed, too, and as a delta from each OLD of the same architecture: a node downloads what is smallest for it.
'keys' makes a key and writes release-keys.json, for build-packages.sh --release-keys or /etc/bramble/release-keys.json.
minisign -Vm release.json -x release.json.ID.minisig -p ID.pub checks a signature.`,
  forms: { keys: '', 'release DEB...': '' },
  options: {
    out: { value: 'DIR', help: 'where the files go', default: 'dist/release' },
    key: { value: 'FILE', help: 'private key (Ed25519, PEM), as "keys" writes it', repeated: true },
    sequence: { value: 'N', help: 'in place of that of the package', range: [1, 2 ** 40] },
    from: {
      value: 'OLD',
      help: 'an earlier release (its folder) or an earlier package of the same program, from which a delta is made',
      repeated: true,
    },
    floor: { value: 'N', help: 'least sequence of a version that it can follow', range: [1, 2 ** 40] },
  },
} as const satisfies Command

async function main(): Promise<number> {
  const line = readArguments(row, process.argv.slice(2))
  if (line.want !== 'act')
    return printText(line, {
      stdout: (text) => void process.stdout.write(text),
      stderr: (text) => void process.stderr.write(text),
    })
  const { values, form, args } = line
  mkdirSync(values.out, { recursive: true })
  if (form === 'keys') makeKey(values.out)
  else await makeRelease(values, args)
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
  readonly from: readonly string[]
}

async function makeRelease({ out, key, sequence, floor = 1, from }: Asked, packages: readonly string[]): Promise<void> {
  if (key.length === 0) throw new Error('Give at least one --key')
  const made = packages.map(packedIn)
  const [first] = made
  if (
    first === undefined ||
    made.some(({ version, program }) => version !== first.version || program !== first.program)
  )
    throw new Error('The packages have different versions, or are of different programs')
  const earlier = from.flatMap((path) => (path.endsWith('.deb') ? [packedIn(path)] : archivesOfRelease(path)))
  const other = earlier.find(({ program }) => program !== first.program)
  if (other !== undefined)
    throw new Error(`--from names a release of ${other.program}, and this is one of ${first.program}`)
  const archives: { [arch: string]: ReleaseManifest['archives'][string] } = {}
  for (const one of made) {
    const { program, version, arch, archive } = one
    const name = join(out, `${program}_${version}_${arch}.tar`)
    writeFileSync(name, archive)
    chmodSync(name, 0o644)
    console.log(name)
    const deltas = [...(await writeDeltas(one, earlier, out))]
    const sha256 = createHash('sha256').update(archive).digest('hex')
    archives[arch] = { size: archive.length, sha256, ...(deltas.length > 0 && { deltas }) }
  }
  const manifest: ReleaseManifest = {
    format: 1,
    program: first.program,
    version: first.version,
    sequence: sequence ?? first.sequence,
    floor,
    runtime: first.runtime,
    ...(first.storeFormats && { storeFormats: first.storeFormats }),
    archives,
  }
  const file = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
  if (file.length > largestManifest)
    throw new Error(`release.json is larger than ${largestManifest} bytes: give fewer --from`)
  writeFileSync(join(out, 'release.json'), file)
  for (const path of key) {
    const privateKey = createPrivateKey(readFileSync(path))
    const id = readSignatureKey(signatureKeyText(privateKey))?.id ?? ''
    const trusted = `${manifest.program} ${manifest.version} sequence ${manifest.sequence}`
    writeFileSync(join(out, `release.json.${id}.minisig`), signFile(file, privateKey, trusted))
  }
}

/** The archive of the package at `path`. */
function packedIn(path: string) {
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
    const runtime = readFileSync(join(library, 'runtime'), 'utf8').trim()
    return { program, version, sequence, storeFormats, arch, runtime, archive: releaseArchive(files) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

process.exit(await main())

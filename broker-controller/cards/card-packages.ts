/** The packages that a card carries. Which of them suffice is decided without reading them. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

export type CardPackage = {
  /** As apt names it: NAME_VERSION_ARCH.deb. */
  readonly fileName: string
  readonly path: string
  readonly size: number
  readonly sha256: string
}

/** Every .deb in the folder, if a machine can become a node with them. */
export async function readPackages(folder: string): Promise<readonly CardPackage[]> {
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new Error(`Cannot read the packages in ${folder}`, { cause })
  })
  const fileNames = names.filter((name) => name.endsWith('.deb')).sort()
  const problem = packagesProblem(fileNames)
  if (problem !== undefined) throw new Error(`${folder}: ${problem}`)
  const packages: CardPackage[] = []
  for (const fileName of fileNames) packages.push(await readPackage(folder, fileName))
  return packages
}

/** Why a machine with these would not become a node; undefined if it would. */
export function packagesProblem(fileNames: readonly string[]): string | undefined {
  const names = new Set<string>()
  for (const fileName of fileNames) {
    const [, name, arch] = /^([a-z0-9][a-z0-9+.-]*)_[A-Za-z0-9.+~%-]+_([a-z0-9]+)\.deb$/.exec(fileName) ?? []
    if (name === undefined) return `${fileName} is not named as a package: NAME_VERSION_ARCH.deb`
    if (arch !== 'arm64' && arch !== 'all') return `${fileName} is for ${arch}, and the machines of cards are arm64`
    if (names.has(name)) return `There are two versions of ${name}: remove one`
    names.add(name)
  }
  if (names.has('bramble-archive-keyring')) return undefined
  const missing = ['bramble-agent', 'bramble-runtime'].filter((name) => !names.has(name))
  return missing.length === 0
    ? undefined
    : `${missing.join(' and ')} for arm64 must be here, or bramble-archive-keyring, which has the machine fetch them`
}

async function readPackage(folder: string, fileName: string): Promise<CardPackage> {
  const path = join(folder, fileName)
  const { size } = await stat(path)
  const file = await open(path, 'r')
  const start = Buffer.alloc(8)
  await file.read(start, 0, 8, 0).finally(() => file.close())
  if (start.toString('latin1') !== '!<arch>\n') throw new Error(`${path} is not a package of Debian`)
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path)) digest.update(chunk)
  return { fileName, path, size, sha256: digest.digest('hex') }
}

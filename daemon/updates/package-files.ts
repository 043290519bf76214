/** What the package of a program that is updated contains: its version, and the keys of the publisher. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { integer, object, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { type ReleaseKeys, readReleaseKeys } from './release-manifest.ts'
import type { Release } from './update-state.ts'

const BaseSchema = object({ version: text, sequence: integer })

/** Keys of the operator, who may publish releases for an own fleet: they replace those of the package. */
const operatorKeys = '/etc/bramble/release-keys.json'

export const debianArchitecture = process.arch === 'x64' ? 'amd64' : process.arch

/** What starts and judges versions is only in the package, and not in the archives of releases. */
export const onlyInPackage: readonly string[] = [
  'start',
  'prepare',
  'has-joined',
  'os-updates',
  'bramble-update',
  'bramble-update.mjs',
  'bramble-controller-update',
  'bramble-controller-update.mjs',
  'release.json',
  'release-keys.json',
]

/** The version of the package in `folder`. */
export async function readBase(folder: string, packageName: string): Promise<Pick<Release, 'version' | 'sequence'>> {
  const path = join(folder, 'release.json')
  const decoded = decode(BaseSchema, parseJson(await readFile(path, 'utf8')))
  if (!decoded.ok) throw new Error(`${path} is damaged: run apt-get install --reinstall ${packageName}`)
  return decoded.value
}

/** Those of the operator, else those of the package in `folder`. */
export async function readKeys(folder: string): Promise<ReleaseKeys> {
  for (const path of [operatorKeys, join(folder, 'release-keys.json')]) {
    const written = await readFile(path, 'utf8').catch(() => undefined)
    if (written === undefined) continue
    const keys = readReleaseKeys(written)
    if (keys === undefined)
      throw new Error(`${path} is invalid: it needs a threshold and as many keys of minisign or more`)
    return keys
  }
  throw new Error(`No keys of a publisher are installed. Write them to ${operatorKeys}`)
}

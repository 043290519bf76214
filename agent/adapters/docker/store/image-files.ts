/** Docker's files of images, read without Docker: which images it has, and what of them is damaged. With the storage driver overlay2 only. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { fieldOf, isObject, parseJson } from '../../../../api/text/json.ts'
import { isMissing } from '../../../../daemon/errors.ts'
import { diskErrorOf } from './disk-errors.ts'
import { layerDamage } from './layer-check.ts'

export type NamedImage = { readonly name: string; readonly id: string }

const digest = /^sha256:[0-9a-f]{64}$/
/** Bounds a configuration, and the list of the names of all images. */
const mostBytes = 16 * 1024 * 1024

/** The images that have a tag, also those whose configuration Docker could not read at its start. */
export async function namedImages(rootDirectory: string): Promise<readonly NamedImage[]> {
  const content = await read(join(rootDirectory, 'image/overlay2/repositories.json'))
  const repositories = ownField(parseJson(content?.toString('utf8') ?? ''), 'Repositories')
  if (!isObject(repositories)) return []
  return Object.values(repositories).flatMap((names) =>
    Object.entries(isObject(names) ? names : {}).flatMap(([name, id]) =>
      typeof id === 'string' && digest.test(id) && !name.includes('@') ? [{ name, id }] : [],
    ),
  )
}

/** `id`: `sha256:…`. undefined: nothing of it is damaged, as far as Docker recorded what it was. */
export async function imageDamage(rootDirectory: string, id: string, signal: AbortSignal): Promise<string | undefined> {
  if (!digest.test(id)) return undefined
  try {
    return await foundDamage(rootDirectory, id, signal)
  } catch (error) {
    const damage = diskErrorOf(error)
    if (damage === undefined) throw error
    return `Docker's record of it cannot be read (${damage})`
  }
}

async function foundDamage(rootDirectory: string, id: string, signal: AbortSignal): Promise<string | undefined> {
  const content = await read(join(rootDirectory, 'image/overlay2/imagedb/content', id.replace(':', '/')))
  if (content === undefined) return 'its configuration is missing'
  const found = createHash('sha256').update(content).digest('hex')
  if (id !== `sha256:${found}`)
    return `its configuration is damaged (${content.length} bytes whose digest is another one)`
  const layers = ownField(ownField(parseJson(content.toString('utf8')), 'rootfs'), 'diff_ids')
  const diffIDs = Array.isArray(layers) ? layers.filter((one) => typeof one === 'string' && digest.test(one)) : []
  return await layerDamage({ rootDirectory, layers: diffIDs }, signal)
}

function ownField(value: unknown, name: string): unknown {
  return isObject(value) ? fieldOf(value, name) : undefined
}

/** undefined: the file does not exist. */
async function read(path: string): Promise<Buffer | undefined> {
  const file = await open(path).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (file === undefined) return undefined
  try {
    const { size } = await file.stat()
    if (size > mostBytes) throw new Error(`${path} has more than ${mostBytes} bytes`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

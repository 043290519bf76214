/**
 * A pool of this machine: a folder, or the disk that is mounted there. A file in it has its identity. The data directory remembers it: once a
 * pool was there, a folder without it is a disk that is missing, and gets no volumes. A pool in which no volume was ever made is given up for
 * that of a disk which is mounted there later.
 */
import { basename, dirname, join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { bool, type Described, object, optional, text } from '../../../../api/schema.ts'
import { isPool, type Pool } from '../../../../api/storage/pools.ts'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { codeOf } from '../../../../daemon/errors.ts'
import type { PoolReserve } from '../../../pods/volumes/pool-settings.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { PoolFiles } from './pool-files.ts'
import { type PoolMoves, poolMoves } from './pool-moves.ts'
import { type PoolTrash, poolTrash } from './pool-trash.ts'
import { type VolumeRecords, volumeRecords } from './volume-records.ts'

/** `unused`, in the data directory: this agent made the pool, and no volume in it. */
const IdentitySchema = object({ id: text, unused: optional(bool) })
type Identity = Described<typeof IdentitySchema>

export interface VolumePool {
  readonly source: PoolSource
  readonly records: VolumeRecords
  readonly trash: PoolTrash
  readonly moves: PoolMoves
  /** Makes it at the first call. Throws VolumeError if it is missing. */
  open(): Promise<Pool>
  /** That of its identity when it was there last, and whether volumes were made in it; undefined: it was never there. */
  remembered(): Promise<{ readonly id: string; readonly isUsed: boolean } | undefined>
  /** Where the volume is in this pool. Makes its folder if it was never made; throws VolumeError if it is missing. */
  folder(volume: PoolVolume): Promise<string>
  /** Moves the folder of the volume to the trash. Throws VolumeError if it must not be: see `pool-trash.ts`. */
  discard(order: NodeVolumeOrder): Promise<void>
  /** It has volumes from now on: it is not given up for another disk. */
  use(): Promise<void>
}

export type PoolSource = {
  /** Without links. */
  readonly path: string
  /** The file that remembers the identity, outside of the pool. */
  readonly memory: string
  /** As in the configuration; undefined: the pool of the data directory. */
  readonly name?: string
  readonly isDefault: boolean
  readonly reserve?: PoolReserve | undefined
  /** The folder is made where it is missing. That of a configured path is not: its disk may be missing. */
  readonly isMade: boolean
  /** Mounts its disk. Throws VolumeError if it cannot be mounted. */
  readonly attach?: () => Promise<void>
}

export type PoolVolume = {
  /** The id of its pool. */
  readonly pool: string
  readonly uid: string
  /** Its path on the node that it was made for: the last part is its name in the pool. */
  readonly path: string
  /** For people who read the disk: `namespace/name`. */
  readonly claim: string
  readonly claimUID?: string
  /** Its folder is in the pool or in its trash: none is made. */
  readonly hasData?: boolean
  /** Only its owner and a group may use it. */
  readonly hasGroup: boolean
}

export function volumePool(source: PoolSource, files: PoolFiles): VolumePool {
  const { path, memory, name, isDefault, isMade, attach } = source
  const own = join(path, '.bramble')

  const open = async (): Promise<Pool> => {
    await attach?.()
    const remote = await files.remoteType(path)
    if (remote !== undefined) throw new VolumeError(`the pool ${path} is on a remote file system (${remote})`)
    const known = await readIdentity(memory, files)
    const found = (await readIdentity(join(own, 'pool.json'), files))?.id
    await refuseOther(known, found)
    if (!isMade && !(await isFolder(path, files))) throw new VolumeError(`the folder ${path} does not exist`)
    const id = found ?? (await made(path, own, files))
    // A pool that was found may have volumes.
    if (known?.id !== id) await remember({ id, ...(found === undefined && { unused: true }) })
    return {
      id,
      path,
      ...(name !== undefined && { name }),
      ...(isDefault !== (name === undefined) && { default: isDefault }),
    }
  }
  /** Throws VolumeError if another pool, or none, is where the one with volumes was. */
  const refuseOther = async (known: Identity | undefined, found: string | undefined): Promise<void> => {
    if (known === undefined || known.id === found) return
    const isGivenUp = known.unused === true && (found !== undefined || (await isOtherDisk(path, files)))
    if (isGivenUp) return
    const there = found === undefined ? 'its identity is missing' : `pool ${found} is there`
    throw new VolumeError(`the pool ${known.id} is not at ${path}: ${there}. Mount its disk there`)
  }
  const remember = async (pool: Identity) => {
    await files.makeFolder(dirname(memory))
    await files.replace(memory, `${JSON.stringify(pool)}\n`)
  }
  /** Before its first volume is made. */
  const use = async () => {
    const known = await readIdentity(memory, files)
    if (known?.unused === true) await remember({ id: known.id })
  }

  const openThis = async (pool: string) => {
    const { id } = await open()
    if (id !== pool) throw new VolumeError(`the pool ${pool} is not on this machine, which has the pool ${id}`)
  }
  const records = volumeRecords(own, files)
  const trash = poolTrash(path, files)
  const moves = poolMoves(path, files)

  /** A PersistentVolume that names a folder in the trash takes it back. Throws VolumeError if its data must be somewhere and is not found. */
  const makeOrRestore = async (
    folder: string,
    { pool, uid, hasData, hasGroup }: Pick<PoolVolume, 'pool' | 'uid' | 'hasData' | 'hasGroup'>,
  ): Promise<void> => {
    if (await trash.has(uid)) throw new VolumeError(`its data is in the trash of the pool ${pool}`)
    await use()
    if (await trash.restore(basename(folder))) return
    if (hasData) throw new VolumeError(`the folder ${folder} is missing, and not in the trash of the pool ${pool}`)
    await makeVolume(path, folder, { hasGroup, files })
  }

  return {
    source,
    ...{ records, trash, moves },
    open,
    async remembered() {
      const known = await readIdentity(memory, files)
      return known && { id: known.id, isUsed: known.unused !== true }
    },
    use,
    async folder({ pool, uid, path: madeFor, claim, claimUID, hasData = false, hasGroup }) {
      await openThis(pool)
      const folder = join(path, folderName(madeFor))
      const held = await moves.held(uid)
      if (held !== undefined)
        throw new VolumeError(`its data is being moved to another pool, or was (move ${held.id}, in ${own}/moves)`)
      const before = await records.read(uid)
      const earlier = before === undefined ? await records.ofFolder(basename(folder), uid) : undefined
      if (!(await isFolder(folder, files))) {
        if (before !== undefined || earlier !== undefined) {
          const missing = `the folder ${folder} was made before and is missing. Its data is not in the pool ${pool}`
          throw new VolumeError(missing)
        }
        await makeOrRestore(folder, { pool, uid, hasData, hasGroup })
      }
      // The PersistentVolume was created again. Without any record, after a power cut here, nothing deletes the folder.
      if (earlier !== undefined) await records.remove(earlier.uid)
      // The record comes after its folder, which is on the disk by then: an agent that ends in between writes it the next time.
      await records.write({ uid, claim, ...(claimUID && { claimUID }), folder: basename(folder) }, before)
      return folder
    },
    async discard(order) {
      await openThis(order.pool)
      await trash.discard(order)
      // An agent was killed while its data came from a backup.
      await moves.remove(order.uid)
    },
  }
}

/** undefined: it is not there. Where the disk fails, nothing is created in the place of data. */
async function readIfThere(path: string, files: PoolFiles): Promise<string | undefined> {
  return await files.read(path).catch(unlessMissing(path))
}

function unlessMissing(path: string): (error: unknown) => undefined {
  return (error) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw new VolumeError(`${path} cannot be read: ${codeOf(error)}`, { cause: error })
  }
}

async function readIdentity(path: string, files: PoolFiles): Promise<Identity | undefined> {
  const found = await readIfThere(path, files)
  if (found === undefined) return undefined
  const identity = decode(IdentitySchema, parseJson(found))
  if (!identity.ok || !isPool({ id: identity.value.id, path: '/' }))
    throw new VolumeError(`${path} is not the identity of a pool`)
  return identity.value
}

/** An empty disk that is mounted there is not a disk that is missing. */
async function isOtherDisk(path: string, files: PoolFiles): Promise<boolean> {
  const [there, above] = [await files.found(path).catch(unlessMissing(path)), await files.found(dirname(path))]
  return there !== undefined && there.dev !== above.dev
}

/** A folder with other files is not taken as a pool. A disk that was just formatted has `lost+found`. */
async function made(path: string, own: string, files: PoolFiles): Promise<string> {
  await files.makeFolder(path)
  const others = (await files.names(path)).filter((name) => name !== 'lost+found' && name !== '.bramble')
  if (others.length > 0) throw new VolumeError(`${path} has files and no identity of a pool`)
  await files.makeFolder(own)
  const id = files.newID()
  await files.replace(join(own, 'pool.json'), `${JSON.stringify({ id })}\n`)
  return id
}

/** Created with its mode, or not at all. Images with a user and without an fsGroup must be able to write. */
async function makeVolume(
  pool: string,
  folder: string,
  { hasGroup, files }: { readonly hasGroup: boolean; readonly files: PoolFiles },
): Promise<void> {
  const fresh = await files.freshFolder(join(pool, '.bramble'), 'new-', hasGroup ? 0o770 : 0o777)
  await files.rename(fresh, folder)
  await files.sync(pool)
}

/** False: nothing is there. */
async function isFolder(path: string, files: PoolFiles): Promise<boolean> {
  const found = await files.found(path).catch(unlessMissing(path))
  if (found !== undefined && !found.isFolder) throw new VolumeError(`${path} is not a folder`)
  return found !== undefined
}

/** Names that begin with a dot are the pool's own. */
function folderName(path: string): string {
  const name = basename(path)
  if (name === '' || name.startsWith('.')) throw new VolumeError(`Not a path of a volume: ${JSON.stringify(path)}`)
  return name
}

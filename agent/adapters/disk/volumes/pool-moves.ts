/**
 * What a pool keeps of moves. At the source, `.bramble/moves/UID.json`: no pod gets the volume. It stays when the data has gone, so that a controller
 * with an older store starts no pod without it. At the target, `.bramble/incoming/UID/MOVE`: the copy, as `data`, and what was received.
 */
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { type Described, integer, object, optional, text } from '../../../../api/schema.ts'
import type { CopyResult, NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { codeOf, isMissing } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { PoolFiles } from './pool-files.ts'
import { safeFileName, volumeRecords } from './volume-records.ts'

const CopySchema = object({ round: integer, files: integer, bytes: integer, digest: text })
/** `sent`: since it is held. */
const HeldSchema = object({ id: text, sent: optional(CopySchema) })
export type HeldVolume = Described<typeof HeldSchema>

export interface PoolMoves {
  /** undefined: pods may have the volume. */
  held(uid: string): Promise<HeldVolume | undefined>
  hold(uid: string, id: string): Promise<HeldVolume>
  /** Does nothing if the volume is not held for this move. */
  saveSent(uid: string, id: string, sent: CopyResult): Promise<void>
  release(uid: string): Promise<void>
  removeSnapshots(uid: string): Promise<void>
  /** Where tar notes what this copy had: the next one has what has changed since. */
  snapshot(uid: string, round: number): Promise<string>
  /** Where the copy comes. What an earlier move has left there is removed. */
  incoming(uid: string, id: string): Promise<string>
  received(uid: string, id: string): Promise<CopyResult | undefined>
  /** undefined: the copy is being changed. */
  saveReceived(uid: string, id: string, received: CopyResult | undefined): Promise<void>
  /** The copy becomes the folder of the order. Throws VolumeError if it is not whole. */
  keep(order: NodeVolumeOrder, id: string): Promise<void>
  /** Nothing of any move to this pool is left. */
  remove(uid: string): Promise<void>
}

/** `path`: of the pool. */
export function poolMoves(path: string, files: PoolFiles): PoolMoves {
  const own = join(path, '.bramble')
  const [moves, incoming] = [join(own, 'moves'), join(own, 'incoming')]
  const records = volumeRecords(own, files)
  const heldFile = (uid: string) => join(moves, `${safeFileName(uid)}.json`)
  const folderOf = (uid: string) => join(incoming, safeFileName(uid))
  const copyOf = (uid: string, id: string) => join(folderOf(uid), safeFileName(id))

  const held: PoolMoves['held'] = async (uid) => {
    const found = await readIfThere(heldFile(uid), files)
    if (found === undefined) return undefined
    const decoded = decode(HeldSchema, parseJson(found))
    // Damaged: it was held.
    return decoded.ok ? decoded.value : { id: '' }
  }
  const saveHeld = (uid: string, value: HeldVolume) => files.replace(heldFile(uid), `${JSON.stringify(value)}\n`)
  const received: PoolMoves['received'] = async (uid, id) => {
    const found = await readIfThere(join(copyOf(uid, id), 'copy.json'), files)
    const decoded = decode(CopySchema, parseJson(found ?? ''))
    return decoded.ok ? decoded.value : undefined
  }

  const removeSnapshots = async (uid: string) => {
    const own = (await files.names(moves).catch((): string[] => [])).filter((name) => name.startsWith(`${uid}.`))
    for (const name of own.filter((one) => one.includes('.snapshot'))) await files.removeFile(join(moves, name))
  }

  return {
    held,
    async hold(uid, id) {
      const before = await held(uid)
      if (before?.id === id) return before
      await files.makeFolder(moves)
      await saveHeld(uid, { id })
      return { id }
    },
    async saveSent(uid, id, sent) {
      if ((await held(uid))?.id === id) await saveHeld(uid, { id, sent })
    },
    removeSnapshots,
    async release(uid) {
      await removeSnapshots(uid)
      await files.removeFile(heldFile(uid))
      if (await isThere(moves, files)) await files.sync(moves)
    },
    async snapshot(uid, round) {
      await files.makeFolder(moves)
      return join(moves, `${safeFileName(uid)}.${round}.snapshot`)
    },
    async incoming(uid, id) {
      const data = join(copyOf(uid, id), 'data')
      await files.makeFolder(incoming)
      await files.makeFolder(folderOf(uid))
      for (const name of await files.names(folderOf(uid)))
        if (name !== id) await files.removeFolder(join(folderOf(uid), name))
      await files.makeFolder(copyOf(uid, id))
      await files.makeFolder(data)
      return data
    },
    received,
    async saveReceived(uid, id, result) {
      const file = join(copyOf(uid, id), 'copy.json')
      if (result !== undefined) await files.replace(file, `${JSON.stringify(result)}\n`)
      else {
        await files.removeFile(file)
        await files.sync(copyOf(uid, id))
      }
    },
    async keep({ uid, folder, claim = '', claimUID }, id) {
      const [from, to] = [join(copyOf(uid, id), 'data'), join(path, folder)]
      const record = { uid, claim, ...(claimUID !== undefined && { claimUID }), folder }
      const before = await records.read(uid)
      if (!(await isThere(to, files))) {
        if (before?.folder === folder) throw new VolumeError(`the folder ${to} was made before and is missing`)
        if ((await received(uid, id)) === undefined) throw new VolumeError(`the copy for ${to} is incomplete`)
        await files.rename(from, to)
        await files.sync(path)
      } else if (
        before?.folder !== folder &&
        ((await received(uid, id)) === undefined || (await isThere(from, files)))
      ) {
        throw new VolumeError(`${to} is there, and is not the copy`)
      }
      await records.write(record, before)
      // The volume is back where it was moved from once.
      await files.removeFile(heldFile(uid))
      await files.removeFolder(folderOf(uid))
    },
    async remove(uid) {
      await files.removeFolder(folderOf(uid))
      if (await isThere(incoming, files)) await files.sync(incoming)
    },
  }
}

async function isThere(path: string, files: PoolFiles): Promise<boolean> {
  const found = await files.found(path).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw new VolumeError(`${path} cannot be read: ${codeOf(error)}`, { cause: error })
  })
  if (found !== undefined && !found.isFolder) throw new VolumeError(`${path} is not a folder`)
  return found !== undefined
}

async function readIfThere(path: string, files: PoolFiles): Promise<string | undefined> {
  return await files.read(path).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw new VolumeError(`${path} cannot be read: ${codeOf(error)}`, { cause: error })
  })
}

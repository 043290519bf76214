/** Which volumes were made in a pool, and for which claims: a file for each, beside the identity of the pool. */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { decode } from '../../../../api/decode.ts'
import { object, optional, text } from '../../../../api/schema.ts'
import { parseJson } from '../../../../api/text/json.ts'
import { codeOf } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import type { VolumeRecord } from '../../../pods/volumes/volume-trash.ts'
import type { PoolFiles } from './pool-files.ts'

const VolumeRecordSchema = object({ uid: text, claim: text, claimUID: optional(text), folder: optional(text) })

export interface VolumeRecords {
  /** undefined: the volume was never made. Throws VolumeError if that cannot be read: nothing is concluded then. */
  read(uid: string): Promise<VolumeRecord | undefined>
  /** `before`: what is written now. */
  write(record: VolumeRecord, before: VolumeRecord | undefined): Promise<void>
  remove(uid: string): Promise<void>
  uids(): Promise<readonly string[]>
  /**
   * That of another volume with this folder. The same claim has it with another uid when its PersistentVolume was created again. Records that
   * cannot be decoded are passed over.
   */
  ofFolder(folder: string, exceptUID: string): Promise<VolumeRecord | undefined>
}

/** `own`: the folder of the pool that has its identity. */
export function volumeRecords(own: string, files: PoolFiles): VolumeRecords {
  const folder = join(own, 'volumes')
  const fileOf = (uid: string) => join(folder, `${safeFileName(uid)}.json`)
  const uids = async () => {
    const names = await files.names(folder).catch((error: unknown): string[] => {
      if (codeOf(error) === 'ENOENT') return []
      throw error
    })
    return names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : []))
  }
  return {
    uids,
    async ofFolder(name, exceptUID) {
      for (const uid of await uids()) {
        if (uid === exceptUID) continue
        const text = await files.read(join(folder, `${uid}.json`)).catch(() => '')
        const record = decode(VolumeRecordSchema, parseJson(text))
        if (record.ok && record.value.uid === uid && record.value.folder === name) return record.value
      }
      return undefined
    },
    async read(uid) {
      const path = fileOf(uid)
      const found = await files.read(path).catch((error: unknown) => {
        if (codeOf(error) === 'ENOENT') return undefined
        throw new VolumeError(`${path} cannot be read: ${codeOf(error)}`, { cause: error })
      })
      if (found === undefined) return undefined
      const record = decode(VolumeRecordSchema, parseJson(found))
      if (!record.ok || record.value.uid !== uid) throw new VolumeError(`${path} is not the record of a volume`)
      return record.value
    },
    async write(record, before) {
      if (isDeepStrictEqual(record, before)) return
      await files.makeFolder(folder)
      await files.replace(fileOf(record.uid), `${JSON.stringify(record)}\n`)
    },
    async remove(uid) {
      await files.removeFile(fileOf(uid))
      await files.sync(folder).catch(() => undefined)
    },
  }
}

export function safeFileName(uid: string): string {
  if (!/^[\w-]{1,128}$/.test(uid)) throw new VolumeError(`Not a name for a file: ${JSON.stringify(uid)}`)
  return uid
}

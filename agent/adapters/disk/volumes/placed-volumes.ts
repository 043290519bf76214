/** Which pod of this machine has which volume: a file for each, in a folder of the pod. */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { bool, list, object, oneOf, optional, text } from '../../../../api/schema.ts'
import { parseJson } from '../../../../api/text/json.ts'
import type { KubeletPlace } from '../../../pods/volumes/kubelet-places.ts'
import type { ClaimVolume } from '../../../pods/volumes/volume-store.ts'

const RecordSchema = object({
  uid: text,
  source: oneOf('hostPath', 'local', 'share', 'csi'),
  path: text,
  type: text,
  isBlock: optional(bool),
  /** Where the kubelet has it. Records of earlier versions have none. */
  place: optional(list(text)),
})
export type Placed = Pick<ClaimVolume, 'uid' | 'source' | 'path' | 'type'> & {
  readonly isBlock?: boolean | undefined
  readonly place?: KubeletPlace | undefined
}

export type PlacedVolumesNeeds = {
  /** Has the records of the pod. */
  readonly folderOf: (podUID: string) => string
  /** Has a folder for each pod, in it `claims`. */
  readonly pods: string
}

export interface PlacedVolumes {
  /** undefined: it was not placed, or its record is damaged. */
  read(podUID: string, name: string): Promise<Placed | undefined>
  write(podUID: string, name: string, placed: Placed): Promise<void>
  /** Those of the pod. */
  of(podUID: string): Promise<readonly Placed[]>
  /** The uid of a pod that has a volume for which this is true. */
  podWith(isIt: (placed: Placed) => boolean): Promise<string | undefined>
  /** Whether a pod other than this one has a volume for which this is true. */
  othersHave(podUID: string, isIt: (placed: Placed) => boolean): Promise<boolean>
}

export function placedVolumes({ folderOf, pods }: PlacedVolumesNeeds): PlacedVolumes {
  const read: PlacedVolumes['read'] = async (podUID, name) => {
    const found = await readFile(join(folderOf(podUID), name), 'utf8').catch(() => undefined)
    if (found === undefined) return undefined
    const record = decode(RecordSchema, parseJson(found))
    return record.ok ? record.value : undefined
  }

  const of = async (podUID: string): Promise<readonly Placed[]> => {
    const found: Placed[] = []
    for (const name of await readdir(folderOf(podUID)).catch(() => [])) {
      const placed = await read(podUID, name)
      if (placed !== undefined) found.push(placed)
    }
    return found
  }

  const podWith = async (isIt: (placed: Placed) => boolean, except = ''): Promise<string | undefined> => {
    for (const pod of await readdir(pods).catch(() => [])) {
      if (pod !== except && (await of(pod)).some(isIt)) return pod
    }
    return undefined
  }

  return {
    read,
    of,
    async write(podUID, name, { uid, source, path, type, isBlock, place }) {
      const folder = folderOf(podUID)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      // Names of volumes do not begin with a dot.
      await writeFile(join(folder, `.${name}`), JSON.stringify({ uid, source, path, type, isBlock, place }))
      await rename(join(folder, `.${name}`), join(folder, name))
    },
    podWith: (isIt) => podWith(isIt),
    othersHave: async (podUID, isIt) => (await podWith(isIt, podUID)) !== undefined,
  }
}

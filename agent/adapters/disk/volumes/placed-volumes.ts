/** Which pod of this machine has which volume: a file for each, in a folder of the pod. */
import { join } from 'node:path'
import { decode } from '../../../../api/decode.ts'
import { bool, list, object, oneOf, optional, text } from '../../../../api/schema.ts'
import { parseJson } from '../../../../api/text/json.ts'
import type { KubeletPlace } from '../../../pods/volumes/kubelet-places.ts'
import type { ClaimVolume } from '../../../pods/volumes/volume-store.ts'
import type { PoolFiles } from './pool-files.ts'

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
  readonly files: Pick<PoolFiles, 'read' | 'names' | 'writeAside'>
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

export function placedVolumes({ folderOf, pods, files }: PlacedVolumesNeeds): PlacedVolumes {
  const read: PlacedVolumes['read'] = async (podUID, name) => {
    const found = await files.read(join(folderOf(podUID), name)).catch(() => undefined)
    if (found === undefined) return undefined
    const record = decode(RecordSchema, parseJson(found))
    return record.ok ? record.value : undefined
  }

  const of = async (podUID: string): Promise<readonly Placed[]> => {
    const found: Placed[] = []
    for (const name of await files.names(folderOf(podUID)).catch(() => [])) {
      const placed = await read(podUID, name)
      if (placed !== undefined) found.push(placed)
    }
    return found
  }

  const podWith = async (isIt: (placed: Placed) => boolean, except = ''): Promise<string | undefined> => {
    for (const pod of await files.names(pods).catch(() => [])) {
      if (pod !== except && (await of(pod)).some(isIt)) return pod
    }
    return undefined
  }

  return {
    read,
    of,
    write: (podUID, name, { uid, source, path, type, isBlock, place }) =>
      files.writeAside(join(folderOf(podUID), name), JSON.stringify({ uid, source, path, type, isBlock, place })),
    podWith: (isIt) => podWith(isIt),
    othersHave: async (podUID, isIt) => (await podWith(isIt, podUID)) !== undefined,
  }
}

/** A machine's volumes in memory: they remember what was placed, and can be made to fail. */
import { VolumeError, type VolumeStore, type WantedVolume } from '../pods/volumes/volume-store.ts'

export interface FakeVolumes extends VolumeStore {
  /** By `uid/name`. */
  readonly placed: ReadonlyMap<string, WantedVolume>
  failNext(message: string): void
  /** What containers left, by `uid/container/attempt`. As long as it is undefined there are no files for it. */
  messages: Map<string, string> | undefined
  /** The texts of files below `/etc`, by UID and name: `uid/hosts`. As long as it is undefined there are none. */
  etc: Map<string, string> | undefined
}

export function fakeVolumes(): FakeVolumes {
  const placed = new Map<string, WantedVolume>()
  let failure: string | undefined
  const fake: FakeVolumes = {
    messages: undefined,
    etc: undefined,
    async messageFile(podUID, containerName, attempt) {
      if (fake.messages === undefined) throw new VolumeError('There are no files for termination messages')
      return `/messages/${podUID}/${containerName}/${attempt}`
    },
    async etcFile(podUID, name, text) {
      if (fake.etc === undefined) throw new VolumeError('There are no files below /etc')
      fake.etc.set(`${podUID}/${name}`, text)
      return `/etc-files/${podUID}/${name}`
    },
    message: async (podUID, containerName, attempt, most) =>
      Buffer.from(fake.messages?.get(`${podUID}/${containerName}/${attempt}`) ?? '').subarray(-most),
    placed,
    failNext(message) {
      failure = message
    },
    async place(podUID, volume) {
      const message = failure
      failure = undefined
      if (message !== undefined) throw new VolumeError(message)
      placed.set(`${podUID}/${volume.name}`, volume)
      return volume.kind === 'hostPath' ? volume.path : `/volumes/${podUID}/${volume.name}`
    },
    part: async (podUID, volume, subPath) => `/volumes/${podUID}/${volume.name}/${subPath}`,
    async remove(podUID) {
      for (const key of [...placed.keys()]) if (key.startsWith(`${podUID}/`)) placed.delete(key)
    },
    podUIDs: async () => [...new Set([...placed.keys()].map((key) => key.split('/')[0] ?? ''))],
  }
  return fake
}

/** A machine's volumes in memory: they remember what was placed, and can be made to fail. */
import { VolumeError, type VolumeStore, type WantedVolume } from '../pods/volumes/volume-store.ts'

export interface FakeVolumes extends VolumeStore {
  /** By `uid/name`. */
  readonly placed: ReadonlyMap<string, WantedVolume>
  /** By `uid/id`: those that survive a reboot. */
  readonly durableTokens: Map<string, string>
  failNext(message: string): void
  /** By path of a hostPath volume: why its file system does not answer. */
  readonly silent: Map<string, string>
  /** Those of them whose folder was replaced on its server. */
  readonly replaced: Set<string>
  /** The pods whose parts of volumes were unmounted. */
  readonly unmounted: string[]
  /** What containers left, by `uid/container/attempt`. As long as it is undefined there are no files for it. */
  messages: Map<string, string> | undefined
  /** The texts of files below `/etc`, by UID and name: `uid/hosts`. As long as it is undefined there are none. */
  etc: Map<string, string> | undefined
}

export function fakeVolumes(): FakeVolumes {
  const placed = new Map<string, WantedVolume>()
  const tokens = new Map<string, string>()
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
    async saveToken(podUID, id, token, { durable }) {
      const message = failure
      failure = undefined
      if (message !== undefined) throw new VolumeError(message)
      tokens.set(`${podUID}/${id}`, token)
      if (durable) fake.durableTokens.set(`${podUID}/${id}`, token)
    },
    savedToken: async (podUID, id) => tokens.get(`${podUID}/${id}`) ?? fake.durableTokens.get(`${podUID}/${id}`),
    durableTokens: new Map(),
    placed,
    failNext(message) {
      failure = message
    },
    async place(podUID, volume) {
      const message = failure
      failure = undefined
      if (message !== undefined) throw new VolumeError(message)
      const key = `${podUID}/${volume.name}`
      const earlier = placed.get(key)
      const isEarlier = volume.kind === 'earlierFiles' || volume.kind === 'earlierClaim'
      if (!isEarlier) placed.set(key, volume)
      else if (earlier === undefined) throw new VolumeError('it was not placed before')
      const found = isEarlier ? earlier : volume
      return found?.kind === 'hostPath' || found?.kind === 'claim' ? found.path : `/volumes/${podUID}/${volume.name}`
    },
    silent: new Map(),
    replaced: new Set(),
    unmounted: [],
    async silence(path) {
      const why = fake.silent.get(path)
      return why === undefined ? undefined : { why, ...(fake.replaced.has(path) && { isReplaced: true }) }
    },
    async placedAt(podUID, name) {
      const volume = placed.get(`${podUID}/${name}`)
      return volume?.kind === 'claim' ? volume.path : undefined
    },
    unmountParts: async (podUID) => void fake.unmounted.push(podUID),
    part: async (podUID, volume, subPath) => `/volumes/${podUID}/${volume.name}/${subPath}`,
    async remove(podUID) {
      for (const all of [placed, tokens, fake.durableTokens]) {
        for (const key of [...all.keys()]) if (key.startsWith(`${podUID}/`)) all.delete(key)
      }
    },
    podUIDs: async () => [...new Set([...placed.keys()].map((key) => key.split('/')[0] ?? ''))],
  }
  return fake
}

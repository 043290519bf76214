/** Keys in etcd: `PREFIX/RESOURCE/NAMESPACE/NAME` of an object, and those that the store has for itself. */
import type { ObjectKey } from '../store.ts'

/** The name of a kind, as in `ResourceRegistry`, with the key of one of its objects. */
export type StoredKey = ObjectKey & { readonly resource: string }

export interface EtcdKeys {
  /** Range of all keys of this store, and of no other. */
  readonly all: { readonly key: Buffer; readonly rangeEnd: Buffer }
  readonly prefix: string
  of(key: StoredKey): Buffer
  /** All objects of one kind. */
  kind(resource: string): { readonly key: Buffer; readonly rangeEnd: Buffer }
  /** undefined: it is not a key of an object. */
  parse(key: Buffer): StoredKey | undefined
  /** The identity of the store. */
  readonly origin: Buffer
  /** Which process may write. */
  readonly owner: Buffer
  /** Written by each process that became the owner. */
  readonly terms: Buffer
  /** The controllers that use the store: a key for each. */
  readonly controllers: { readonly key: Buffer; readonly rangeEnd: Buffer }
  controller(name: string): Buffer
  /** The ID of the key that encrypts Secrets. */
  readonly secretsKey: Buffer
  /** Versions of leases up to this one may have been assigned. */
  readonly leaseVersions: Buffer
  /** Written by a controller that reads, to receive the change after all that were written before. */
  readonly mark: Buffer
  /** There while objects are being copied into the store, and after they were copied out of it. */
  readonly migration: Buffer
}

/** No kind begins with a dot. */
const own = '.store'

/** `prefix` as in `/bramble/default`, without a slash at its end. */
export function etcdKeys(prefix: string): EtcdKeys {
  const start = `${prefix}/`
  const ours = (name: string) => Buffer.from(`${start}${own}/${name}`)
  return {
    all: below(start),
    prefix,
    of: ({ resource, namespace, name }) => Buffer.from(`${start}${resource}/${namespace}/${name}`),
    kind: (resource) => below(`${start}${resource}/`),
    parse(key) {
      const text = key.toString('utf8')
      if (!text.startsWith(start)) return undefined
      const [resource = '', namespace, ...rest] = text.slice(start.length).split('/')
      if (resource === own || namespace === undefined || rest.length === 0) return undefined
      return { resource, namespace, name: rest.join('/') }
    },
    origin: ours('origin'),
    owner: ours('owner'),
    terms: ours('terms'),
    controllers: below(`${start}${own}/controllers/`),
    controller: (name) => ours(`controllers/${name}`),
    secretsKey: ours('secrets-key'),
    leaseVersions: ours('lease-versions'),
    mark: ours('mark'),
    migration: ours('migration'),
  }
}

/** The range of all keys with this start. Its end is the start with a last character that is one higher: "0" follows "/". */
function below(start: string): { readonly key: Buffer; readonly rangeEnd: Buffer } {
  return { key: Buffer.from(start), rangeEnd: Buffer.from(`${start.slice(0, -1)}0`) }
}

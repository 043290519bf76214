/** PEM. Without `ca` the authorities of Node.js are trusted. */
export type EtcdTls = { readonly ca?: Buffer; readonly certificate?: Buffer; readonly key?: Buffer }

/** Where a store is in etcd. */
export type EtcdPlace = {
  /** `http://HOST:PORT` or `https://HOST:PORT`, at least one, all of one scheme. */
  readonly servers: readonly string[]
  readonly tls: EtcdTls
  /** As in `/bramble/default`. */
  readonly prefix: string
  /** Quota of its database: `--quota-backend-bytes`. Default: etcd's default. */
  readonly quotaBytes?: number
}

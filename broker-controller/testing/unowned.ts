import { compareTarget } from '../store/etcd/etcd-messages.ts'
import type { StoreOwner } from '../store/etcd/store-owner.ts'

/** No process owns the store: several clients may write. */
export async function unowned(): Promise<StoreOwner> {
  return {
    // A key that no store has: this condition always holds.
    condition: () => ({ target: compareTarget.create, key: Buffer.from('/nothing'), createRevision: 0 }),
    failed: () => undefined,
    run: () => new Promise(() => undefined),
    release: async () => undefined,
  }
}

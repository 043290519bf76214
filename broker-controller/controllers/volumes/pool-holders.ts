/** Which node has a pool, and what it has reported since the controller started. */
import type { Node } from '../../../api/node.ts'
import { labelledPools } from '../../../api/storage/pools.ts'
import type { StorageBoard, StorageReport } from '../../usage/storage-board.ts'

export type PoolHolder = { readonly node: Node; readonly report: StorageReport | undefined }

export interface PoolHolders {
  named(node: string | undefined): PoolHolder | undefined
  of(pool: string | undefined): PoolHolder | undefined
}

type Nodes = {
  get(key: { readonly namespace: string; readonly name: string }): Node | undefined
  all(): Iterable<Node>
}

export function poolHolders(nodes: Nodes, storage: Pick<StorageBoard, 'reportOf'>): PoolHolders {
  const named: PoolHolders['named'] = (name) => {
    const node = name === undefined ? undefined : nodes.get({ namespace: '', name })
    return node && { node, report: storage.reportOf(node.metadata.name ?? '') }
  }
  return {
    named,
    of(pool) {
      if (pool === undefined) return undefined
      const found = [...nodes.all()].find((node) => labelledPools(node).includes(pool))
      return named(found?.metadata.name)
    },
  }
}

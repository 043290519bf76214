/** A volume as it is written at each step of its move. Pure. */
import { join } from 'node:path/posix'
import { hasDataAnnotation, type Pool, poolAnnotation, poolLabel, volumeFolder } from '../../../../api/storage/pools.ts'
import { moveAnnotation, moveOf, moveToAnnotation, type VolumeMove } from '../../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import type { StoredVolume } from '../volume-index.ts'

export type MoveTarget = { readonly node: string; readonly pool: Pool }

/** A volume of a pool. The new folder is one that never was: no order for an older one is about it. */
export function withBegunMove(
  volume: StoredVolume,
  { node, pool }: MoveTarget,
  { id, bytes }: { readonly id: string; readonly bytes: number | undefined },
): StoredVolume {
  const { namespace = '', name = '' } = volume.spec?.claimRef ?? {}
  return withMove(volume, {
    ...{ id, phase: 'copy', round: 1 },
    from: { pool: poolOfVolume(volume) ?? '', folder: volume.spec?.local?.path?.split('/').at(-1) ?? '' },
    to: { pool: pool.id, node, folder: volumeFolder(namespace, name, `${volume.metadata.name}-${id}`) },
    ...(bytes !== undefined && { bytes }),
  })
}

export function withMove(volume: StoredVolume, move: VolumeMove): StoredVolume {
  return withAnnotations(volume, { [moveAnnotation]: JSON.stringify(move) })
}

/** From this write on the data is in the other pool. */
export function withNewPlace(volume: StoredVolume, move: VolumeMove, pool: Pool): StoredVolume {
  const moved = withAnnotations(withMove(volume, { ...move, phase: 'place' }), {
    [poolAnnotation]: pool.id,
    [hasDataAnnotation]: 'true',
  })
  const inPool = { key: poolLabel(pool.id), operator: 'Exists' }
  return {
    ...moved,
    spec: {
      ...moved.spec,
      local: { ...moved.spec?.local, path: join(pool.path, move.to.folder) },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [inPool] }] } },
    },
  }
}

/** Neither the move nor the request for it is left. A request for another node stays. */
export function withoutMove(volume: StoredVolume): StoredVolume {
  const { [moveAnnotation]: _, ...annotations } = volume.metadata.annotations ?? {}
  const isOther = annotations[moveToAnnotation] !== (moveOf(volume)?.to.node ?? annotations[moveToAnnotation])
  const { [moveToAnnotation]: __, ...rest } = annotations
  return { ...volume, metadata: { ...volume.metadata, annotations: isOther ? annotations : rest } }
}

function withAnnotations(volume: StoredVolume, more: Readonly<Record<string, string>>): StoredVolume {
  return { ...volume, metadata: { ...volume.metadata, annotations: { ...volume.metadata.annotations, ...more } } }
}

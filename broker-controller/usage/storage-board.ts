/** What each node reported last of its volumes: its pools, their usage, and which orders it has done. In memory only: nodes report at each connection. */
import { isPool } from '../../api/storage/pools.ts'
import {
  longestRefusal,
  type MoveReport,
  mostOrders,
  mostTrashed,
  type PoolUsage,
  type StorageMessage,
  type TrashedVolume,
  type VolumeUsage,
} from '../../api/storage/volume-messages.ts'
import { isMoveID } from '../../api/storage/volume-move.ts'

export type StorageReport = {
  readonly done: ReadonlySet<string>
  /** The reason, by the uid of the volume. */
  readonly refused: ReadonlyMap<string, string>
  readonly pools: readonly PoolUsage[]
  readonly volumes: readonly VolumeUsage[]
  readonly trash: readonly TrashedVolume[]
  /** By the uid of the volume; undefined: its agent does not move volumes. */
  readonly moves: ReadonlyMap<string, MoveReport> | undefined
  /** The kinds of shares that it mounts. */
  readonly shares: readonly string[]
}

export interface StorageBoard {
  /** Gives the names of fields that were longer than a node may report. */
  receive(node: string, message: StorageMessage): readonly string[]
  reportOf(node: string): StorageReport | undefined
  /** Called with the name of a node that has reported. */
  onReport(listener: (node: string) => void): void
  forget(node: string): void
  /** How much of a volume was copied to the node that it is moved to, by its uid. */
  readonly copiedBytes: Map<string, number>
}

const most = {
  done: mostOrders,
  refused: mostOrders,
  pools: 16,
  volumes: 1_024,
  trash: mostTrashed,
  moves: mostOrders,
  shares: 16,
} as const

export function storageBoard(): StorageBoard {
  const reports = new Map<string, StorageReport>()
  const listeners: ((node: string) => void)[] = []
  return {
    receive(node, message) {
      const { report, cut } = boundedStorage(message)
      reports.set(node, report)
      for (const notify of listeners) notify(node)
      return cut
    },
    reportOf: (node) => reports.get(node),
    onReport: (listener) => void listeners.push(listener),
    forget: (node) => void reports.delete(node),
    copiedBytes: new Map(),
  }
}

/** Numbers that are not sizes are left out. */
export function boundedStorage(message: StorageMessage) {
  const { done, refused, pools = [], volumes = [], trash = [], moves, shares = [] } = message
  const cut: string[] = []
  const bounded = <T>(field: keyof typeof most, list: readonly T[]): readonly T[] => {
    if (list.length <= most[field]) return list
    cut.push(field)
    return list.slice(0, most[field])
  }
  const report: StorageReport = {
    done: new Set(bounded('done', done)),
    refused: new Map(bounded('refused', refused).map(({ uid, reason }) => [uid, reason.slice(0, longestRefusal)])),
    pools: bounded('pools', pools).filter(
      ({ id, capacityBytes, availableBytes, inTrash = 0 }) =>
        isPool({ id, path: '/' }) && [capacityBytes, availableBytes, inTrash].every(isSize),
    ),
    volumes: bounded('volumes', volumes).filter(({ uid, usedBytes }) => uid.length <= 128 && isSize(usedBytes)),
    trash: bounded('trash', trash).filter(isTrashed),
    moves:
      moves &&
      new Map(
        bounded('moves', moves)
          .filter(isMoved)
          .map((one) => [one.uid, withShortTexts(one)]),
      ),
    shares: bounded('shares', shares).filter((kind) => kind.length <= longestText),
  }
  return { report, cut }
}

const longestName = 253
const longestText = 64

/** The folder is one in the pool, and not one of the pool's own. */
function isTrashed({ uid, pool, volume, folder, claim = '', ...rest }: TrashedVolume): boolean {
  const { capacity = '', storageClass = '', usedBytes = 0, keptSeconds, keepSeconds } = rest
  const isPlace = /^[^./][^/]{0,254}$/.test(folder) || folder === ''
  const areShort =
    volume.length <= longestName && claim.length <= 2 * longestName + 1 && storageClass.length <= longestName
  const areSizes = [usedBytes, keptSeconds, keepSeconds].every(isSize)
  return (
    isPool({ id: pool, path: '/' }) &&
    /^[\w-]{1,128}$/.test(uid) &&
    isPlace &&
    areShort &&
    capacity.length <= longestText &&
    areSizes
  )
}

function isMoved({ uid, id, sent, received }: MoveReport): boolean {
  const areCopies = [sent, received].every(
    (copy) =>
      copy === undefined || ([copy.round, copy.files, copy.bytes].every(isSize) && copy.digest.length <= longestText),
  )
  return uid.length <= 128 && isMoveID(id) && areCopies
}

function withShortTexts(report: MoveReport): MoveReport {
  const { refusal, waits } = report
  return {
    ...report,
    ...(refusal !== undefined && { refusal: refusal.slice(0, longestRefusal) }),
    ...(waits !== undefined && { waits: waits.slice(0, longestRefusal) }),
  }
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

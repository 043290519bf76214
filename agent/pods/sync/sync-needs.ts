/** What the sync of a pod works with. */
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'
import type { PodIsolation } from '../admission/pod-isolation.ts'
import type { StartGate } from '../admission/start-gate.ts'
import type { OptionSources } from '../containers/container-start.ts'
import type { ExecuteStep } from '../containers/step-executors.ts'
import type { PodImages } from '../images/pod-images.ts'
import type { Prober } from '../probes/prober.ts'
import type { PodEvent } from '../record/pod-events.ts'
import type { PodRecords } from '../record/pod-records.ts'
import type { TrustedTime } from '../record/trusted-time.ts'
import type { PodStatusManager } from '../status/pod-status-manager.ts'
import type { TokenManager } from '../volumes/token-manager.ts'
import type { VolumeStore } from '../volumes/volume-store.ts'
import type { PodAddresses } from '../wanted/pod-addresses.ts'
import type { WantedPods } from '../wanted/pod-config.ts'
import type { PodLogLinks } from './log-links.ts'
import type { PodUpdates } from './pod-updates.ts'

export type SyncPodNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'listContainers' | 'logTail'>
  readonly volumes: VolumeStore
  readonly records: PodRecords
  readonly statuses: PodStatusManager
  readonly images: Pick<PodImages, 'factsOf'>
  readonly execute: ExecuteStep
  readonly sources: () => OptionSources
  readonly tokens: Pick<TokenManager, 'of' | 'forget'>
  readonly prober: Pick<Prober, 'observe' | 'forget' | 'vitals' | 'unknownForMs'>
  readonly wanted: WantedPods
  readonly updates: Pick<PodUpdates, 'podEnded'>
  readonly hostIP: () => string | undefined
  /** Address of the other IP family. */
  readonly otherHostIP?: (() => string | undefined) | undefined
  readonly gate: StartGate
  readonly isolation: Pick<PodIsolation, 'observe' | 'hold'>
  readonly addresses: Pick<PodAddresses, 'observe'>
  readonly logLinks?: Pick<PodLogLinks, 'observe'>
  /** What the checkpoint has changed. */
  readonly save: () => void
  /** Resolves with whether the checkpoint has what changed before. */
  readonly saved: () => Promise<boolean>
  readonly date: TrustedTime
  readonly keptDead: number
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  readonly clock: Clock
  readonly log: Log
}

/** Restricts the connections of pods by NetworkPolicies: a pod sends and receives nothing before its rules are there. */
import type { Pod } from '../../../api/pod.ts'
import type { WaitingReason } from '../record/pod-record.ts'

export type FoundPod = {
  readonly pod: Pod | undefined
  readonly path: string
  readonly ip: string
  readonly ipv6?: string
  /** The container that has its network, while it runs. */
  readonly sandbox?: { readonly id: string; readonly pid: number; readonly mac: string }
}

export interface PodIsolation {
  /** The pod as it is now, with the addresses of its sandbox; undefined: it has none. `ipv6`: in canonical form. */
  observe(uid: string, found: FoundPod | undefined): void
  /** Every pod of this machine was observed once. */
  observedAll(): void
  /**
   * Why no container of the pod may start yet; undefined: they may. `isRouted`: the pods of the fleet are on a network of its own.
   * Resolves within some seconds, never rejects.
   */
  hold(uid: string, facts: { readonly isRouted: boolean }): Promise<IsolationDelay | undefined>
}

export type IsolationDelay = WaitingReason & { readonly againInMs: number }

/** Pods are not restricted. */
export const noIsolation: PodIsolation = {
  observe: () => undefined,
  observedAll: () => undefined,
  hold: async () => undefined,
}

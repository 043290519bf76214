/** That a container waits is told once, until something was done about it. */
import type { Pod } from '../../api/pod.ts'
import { containersOf } from './pod-containers.ts'
import { newsOfWaiting, type PodNews } from './pod-events.ts'
import type { PodPlan } from './pod-steps.ts'

export interface ToldWaiting {
  /** What the plan says that containers newly wait for. */
  tell(pod: Pod, plan: PodPlan): void
  /** Something was done for this container: what it waits for from here on is news. */
  forget(containerName: string): void
}

export function toldWaiting(event: (pod: Pod, news: PodNews) => void): ToldWaiting {
  /** By container name: the reason. */
  const told = new Map<string, string>()
  return {
    tell(pod, { waiting }) {
      for (const { name, image = '' } of containersOf(pod)) {
        const wait = waiting.get(name)
        if (wait === undefined || wait.reason === told.get(name)) continue
        const news = newsOfWaiting(pod, name, image, wait)
        // Nothing to tell while it is looked into: what comes of it may be what was told before.
        if (news.length === 0) continue
        told.set(name, wait.reason)
        for (const one of news) event(pod, one)
      }
    },
    forget: (name) => void told.delete(name),
  }
}

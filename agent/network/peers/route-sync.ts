/** Brings the kernel's routes in line with those that are wanted, and keeps in mind what was made and what is missing. */
import type { Log } from '../../../daemon/log.ts'
import type { PeerNetwork } from './peer-network.ts'
import { afterSteps, type HostLinks, type MadeRoutes, planRoutes, type RouteStep } from './route-steps.ts'

export type StepFailure = { readonly step: RouteStep; readonly because: string }

/** Routes, tunnel and Docker's rules on this machine. */
export interface HostNetwork {
  /** Read without starting a process. */
  links(): Promise<HostLinks>
  /** What an earlier agent made, as far as the kernel shows it. */
  made(): Promise<MadeRoutes>
  /** Takes all steps in order, also after a failure; resolves with the failures. */
  apply(steps: readonly RouteStep[]): Promise<readonly StepFailure[]>
  /** Docker accepts packets with our mark from now on. Rejects with the reason where it has no place for such a rule. */
  acceptMarked(): Promise<void>
  /** Removes that rule, if it is there. */
  refuseMarked(): Promise<void>
}

export interface RouteSync {
  /**
   * Takes the steps that are missing. What has just failed is tried again only with `retry`, or when the machine has another link or
   * address than before: its gateways may be reached again. Rejects where a step other than a new
   * route failed: routes that cannot be made are gaps. Resolves with whether a step was taken.
   */
  sync(wanted: PeerNetwork | undefined, retry: boolean): Promise<boolean>
  /** Why the pods of some nodes are not reached, each as a sentence. */
  gaps(): readonly string[]
  /** Networks of this machine that have addresses of the fleet, each as a sentence. */
  overlaps(): readonly string[]
  /** Nothing was made or looked for. */
  isIdle(): boolean
  /** What was made is gone. */
  forget(): void
}

export function routeSync({ host, log }: { readonly host: HostNetwork; readonly log: Log }): RouteSync {
  let made: MadeRoutes | undefined
  let gaps: readonly string[] = []
  let overlaps: readonly string[] = []
  /** The steps that failed last, with the networks that the machine was on. */
  let failedAttempt = ''

  const showGaps = (next: readonly string[]) => {
    for (const gap of next) if (!gaps.includes(gap)) log.warn('Pods of a node cannot be reached', { because: gap })
    gaps = next
  }

  const showOverlaps = (next: readonly string[]) => {
    for (const because of next.filter((one) => !overlaps.includes(one)))
      log.warn('A network of this machine has addresses of the fleet', { because })
    overlaps = next
  }

  return {
    async sync(wanted, retry) {
      made ??= await host.made()
      const links = await host.links()
      const { steps, inTheWay, overlaps: found } = planRoutes(wanted, made, links)
      showOverlaps(found)
      if (steps.length === 0) {
        showGaps(inTheWay)
        return false
      }
      if (!retry && attemptOf(steps, links) === failedAttempt) return false
      const failed = await host.apply(steps)
      made = afterSteps(made, steps, failed)
      const left = failed.map(({ step }) => step)
      failedAttempt = left.length === 0 ? '' : attemptOf(left, links)
      if (steps.length > failed.length) log.info('Routes to pods changed', { steps: steps.length - failed.length })
      showGaps([...failed.flatMap(gapOf), ...inTheWay])
      const others = failed.filter(({ step }) => step.step !== 'addRoute')
      if (others.length > 0) throw new Error(others.map(({ step, because }) => `${step.step}: ${because}`).join('; '))
      return true
    },
    gaps: () => gaps,
    overlaps: () => overlaps,
    isIdle: () => made === undefined,
    forget() {
      made = undefined
    },
  }
}

function attemptOf(steps: readonly RouteStep[], { routes }: HostLinks): string {
  return JSON.stringify([steps, routes.filter(({ gateway }) => gateway === undefined)])
}

function gapOf({ step, because }: StepFailure): readonly string[] {
  return step.step === 'addRoute' ? [`no route to ${step.route.range} by ${step.route.gateway}: ${because}`] : []
}

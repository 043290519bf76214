/** Brings the kernel's routes in line with those that are wanted, and keeps in mind what was made and what is missing. */
import { formatCidr } from '../../../api/text/cidr.ts'
import type { Log } from '../../../daemon/log.ts'
import type { PeerNetwork } from './family-network.ts'
import type { RouteStep } from './host-routes.ts'
import { afterSteps, type HostLinks, isOfIPv6, type MadeRoutes, planRoutes } from './route-steps.ts'

/** The interface of a network that Docker made without a name for it (`bridgeOf`). */
const ofDocker = /^br-[0-9a-f]{12}$/

export type StepFailure = { readonly step: RouteStep; readonly because: string }

/** Routes, tunnel and Docker's rules on this machine. */
export interface HostNetwork {
  /** Read without starting a process. `withIPv6`: with the IPv6 routes. `address`: that of this node, for the MTUs of its link and of tunnels. */
  links(withIPv6?: boolean, address?: string): Promise<HostLinks>
  /** What an earlier agent made, as far as the kernel shows it. */
  made(): Promise<MadeRoutes>
  /** Takes all steps in order, also after a failure; resolves with the failures. */
  apply(steps: readonly RouteStep[]): Promise<readonly StepFailure[]>
  /**
   * Docker accepts packets with our mark from now on. Rejects with the reason where it has no place for such a rule. `withIPv6`: those of
   * IPv6, too, where Docker has IPv6 rules; else none of those.
   */
  acceptMarked(withIPv6: boolean): Promise<void>
  /** Removes that rule, if it is there. */
  refuseMarked(): Promise<void>
}

export interface RouteSync {
  /** Whether an earlier agent has left any. They count as made from then on: a fleet without a network has them removed. */
  hasEarlier(): Promise<boolean>
  /**
   * Takes the steps that are missing. What has just failed is tried again only with `retry`, or when the machine has another link or
   * address than before: its gateways may be reached again. Rejects where a step other than a new
   * route failed: routes that cannot be made are gaps. Resolves with whether a step was taken.
   */
  sync(wanted: PeerNetwork | undefined, retry: boolean): Promise<boolean>
  /** Why the pods of some nodes are not reached, each as a sentence. */
  gaps(): readonly string[]
  /** The same of IPv6 alone. */
  ipv6Gaps(): readonly string[]
  /** Networks of this machine that have addresses of the fleet, each as a sentence. */
  overlaps(): readonly string[]
  /** The bridge of Docker that pods of this node are on, as the routes of the last `sync` have it; undefined: none, or several. */
  podLink(): string | undefined
  /** Nothing was made or looked for. */
  isIdle(): boolean
  /** What was made is gone. */
  forget(): void
}

export function routeSync({ host, log }: { readonly host: HostNetwork; readonly log: Log }): RouteSync {
  let made: MadeRoutes | undefined
  let gaps: readonly string[] = []
  let ipv6Gaps: readonly string[] = []
  let overlaps: readonly string[] = []
  let podLink: string | undefined
  /** The steps that failed last, with the networks that the machine was on. */
  let failedAttempt = ''

  const showGaps = (next: readonly string[], nextOfIPv6: readonly string[]) => {
    const known = [...gaps, ...ipv6Gaps]
    for (const gap of [...next, ...nextOfIPv6])
      if (!known.includes(gap)) log.warn('Pods of a node cannot be reached', { because: gap })
    gaps = next
    ipv6Gaps = nextOfIPv6
  }

  const showOverlaps = (next: readonly string[]) => {
    for (const because of next.filter((one) => !overlaps.includes(one)))
      log.warn('A network of this machine has addresses of the fleet', { because })
    overlaps = next
  }

  return {
    async hasEarlier() {
      made ??= await host.made()
      return made.routes.length > 0 || made.tunnelPeers.length > 0 || (made.serviceRoutes ?? []).length > 0
    },
    async sync(wanted, retry) {
      made ??= await host.made()
      const withIPv6 = wanted?.ipv6 !== undefined || hasMadeIPv6(made)
      const links = await host.links(withIPv6, wanted?.tunnel && wanted.address)
      podLink = wanted && podLinkOf(wanted, links)
      const { steps, inTheWay, ipv6InTheWay, overlaps: found } = planRoutes(wanted, made, links)
      showOverlaps(found)
      const lasting = [...ipv6InTheWay, ...(wanted?.ipv6Gaps ?? [])]
      if (steps.length === 0) {
        showGaps(inTheWay, lasting)
        return false
      }
      if (!retry && attemptOf(steps, links) === failedAttempt) return false
      const failed = await host.apply(steps)
      made = afterSteps(made, steps, failed)
      const left = failed.map(({ step }) => step)
      failedAttempt = left.length === 0 ? '' : attemptOf(left, links)
      if (steps.length > failed.length) log.info('Routes to pods changed', { steps: steps.length - failed.length })
      const [ofIPv6, ofIPv4] = [
        failed.filter(({ step }) => isOfIPv6(step)),
        failed.filter(({ step }) => !isOfIPv6(step)),
      ]
      showGaps([...ofIPv4.flatMap(gapOf), ...inTheWay], [...ofIPv6.flatMap(gapOf), ...lasting])
      const others = ofIPv4.filter(({ step }) => step.step !== 'addRoute')
      if (others.length > 0) throw new Error(others.map(({ step, because }) => `${step.step}: ${because}`).join('; '))
      return true
    },
    gaps: () => gaps,
    ipv6Gaps: () => ipv6Gaps,
    overlaps: () => overlaps,
    podLink: () => podLink,
    isIdle: () => made === undefined,
    forget() {
      made = undefined
    },
  }
}

function podLinkOf({ podCIDR }: PeerNetwork, { routes }: HostLinks): string | undefined {
  const direct = routes.filter(({ range, gateway }) => gateway === undefined && formatCidr(range) === podCIDR)
  const [only, ...others] = direct.map((route) => route.interface)
  return only !== undefined && others.length === 0 && ofDocker.test(only) ? only : undefined
}

function attemptOf(steps: readonly RouteStep[], { routes }: HostLinks): string {
  return JSON.stringify([steps, routes.filter(({ gateway }) => gateway === undefined)])
}

function hasMadeIPv6({ routes, guards = [], tunnelIPv6 = {}, serviceRoutes = [] }: MadeRoutes): boolean {
  if (serviceRoutes.length > 0) return true
  const ranges = [...routes.map(({ range }) => range), ...guards]
  return Object.keys(tunnelIPv6).length > 0 || ranges.some((range) => range.includes(':'))
}

function gapOf({ step, because }: StepFailure): readonly string[] {
  if (step.step === 'addTunnelIPv6') return [`no IPv6 address on ${step.device}: ${because}`]
  if (step.step === 'addServiceRoute') return [`no IPv6 route to Services for processes of this machine: ${because}`]
  return step.step === 'addRoute' ? [`no route to ${step.route.range} by ${step.route.gateway}: ${because}`] : []
}

/** The addresses of a fleet's controllers, the one that led last first, and which of them is tried. */

export type ControllerServers = {
  /** `https://HOST:PORT`, at least one. */
  readonly apiServers: readonly string[]
  /** `mqtts://HOST:PORT`, at least one. Only the controller that leads accepts connections. */
  readonly mqttServers: readonly string[]
}

/** What a machine keeps of them: the addresses with which it joined, and the lists that the controllers published since. */
export type KeptServers = {
  readonly apiUrl: string
  readonly mqttUrl: string
  readonly apiServers?: readonly string[] | undefined
  readonly mqttServers?: readonly string[] | undefined
}

/** As the controller publishes them; one that is alone publishes none. */
export type PublishedServers = Pick<KeptServers, 'apiServers' | 'mqttServers'>

/** Far more than a store in etcd has controllers. */
const mostServers = 16
const longestServer = 300

/** Those with which the machine joined stay in the list: they may be an address that no controller publishes, such as a NAT's. */
export function keptServers({ apiUrl, mqttUrl, apiServers = [], mqttServers = [] }: KeptServers): ControllerServers {
  return {
    apiServers: [...new Set([...apiServers, apiUrl])],
    mqttServers: [...new Set([...mqttServers, mqttUrl])],
  }
}

/** Another controller may lead. The address with which the machine joined does not count as another one: a single controller may have two. */
export function haveOthersToLead({ mqttServers = [] }: PublishedServers): boolean {
  return mqttServers.length > 1
}

/** The lists as they are kept, without invalid addresses. */
export function publishedServers({ apiServers = [], mqttServers = [] }: PublishedServers): Required<PublishedServers> {
  return { apiServers: addresses(apiServers, 'https:'), mqttServers: addresses(mqttServers, 'mqtts:') }
}

function addresses(given: readonly string[], protocol: string): readonly string[] {
  const isAddress = (one: string) => {
    if (one.length > longestServer || !URL.canParse(one)) return false
    const url = new URL(one)
    return url.protocol === protocol && url.hostname !== '' && ['', '/'].includes(url.pathname)
  }
  return [...new Set(given.filter(isAddress))].slice(0, mostServers)
}

export interface ServerChoice {
  /** The one to try. */
  current(): string
  /**
   * This one, the current one unless given, did not answer: the next one is tried. True when each has failed since the last that
   * worked. One that is not the current one any more changes nothing: of requests at the same time each may fail.
   */
  failed(server?: string): boolean
  worked(): void
  /** There are others to try. */
  isOneOfSeveral(): boolean
}

/** `servers`: those of now, at least one. Begins with the first; a change of the list that keeps the present one changes nothing. */
export function serverChoice(servers: () => readonly string[]): ServerChoice {
  let chosen: string | undefined
  const failed = new Set<string>()
  const current = () => {
    const [first = ''] = servers()
    if (chosen === undefined || !servers().includes(chosen)) chosen = first
    return chosen
  }
  return {
    current,
    failed(server = current()) {
      if (server !== current()) return false
      failed.add(server)
      const all = servers()
      chosen = all[(all.indexOf(current()) + 1) % all.length]
      const isRoundOver = all.every((one) => failed.has(one))
      if (isRoundOver) failed.clear()
      return isRoundOver
    },
    worked: () => failed.clear(),
    isOneOfSeveral: () => servers().length > 1,
  }
}

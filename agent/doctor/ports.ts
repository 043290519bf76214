/** Checks of TCP ports: those that the agent needs, and those that the user asks about. */
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type Listener = {
  readonly port: number
  /** `dnsmasq (process 612)`; undefined when the program cannot be seen. */
  readonly by: string | undefined
}

export type AgentDoor = {
  readonly port: number
  readonly listeners: readonly Listener[] | undefined
  /** The agent that runs on the data directory. */
  readonly agentPid: number | undefined
  /** The answer of `/healthz`; undefined when there was none. */
  readonly answer: { readonly status: number; readonly text: string } | undefined
}

/** UDP port 5353 with `multicastDNS`. `trouble`: of an attempt to share it with the other programs of this machine. */
export function mdnsPort(trouble: string | undefined): DoctorFinding {
  const check = 'mdns-port'
  if (trouble === undefined) return ok(check, 'Names can be published by mDNS: UDP port 5353 can be shared')
  const found = `Names are not published by mDNS: UDP port 5353 cannot be shared (${trouble})`
  return problem(
    check,
    found,
    "Find the program that has it with 'ss -lunp sport = 5353', and end it or let it share the port",
  )
}

export function agentPort({ port, listeners, agentPid, answer }: AgentDoor): DoctorFinding {
  const check = 'healthz-port'
  const taken = listeners?.find((listener) => listener.port === port)
  if (listeners === undefined) return unknown(check, 'The ports of this machine are not shown')
  if (agentPid === undefined) {
    if (taken === undefined) return ok(check, `Port ${port} is free for the agent`)
    const who = taken.by ?? 'another program'
    return problem(
      check,
      `Port ${port}, which the agent needs, is taken by ${who}`,
      `End that program, or set healthzPort`,
    )
  }
  if (answer === undefined) {
    const found = `The agent runs (process ${agentPid}), but does not answer at 127.0.0.1:${port}`
    return warning(check, found, 'Give the --healthz-port it was started with; if that is so, restart it')
  }
  if (answer.status === 200) return ok(check, `The agent answers at 127.0.0.1:${port}`)
  const found = `The agent at 127.0.0.1:${port} is unhealthy: ${answer.text.trim().slice(0, 200)}`
  return problem(check, found, "See 'journalctl -u bramble-agent'")
}

/** A port that the user asked about, for a pod. */
export function askedPort(port: number, listeners: readonly Listener[] | undefined): DoctorFinding {
  const check = `port-${port}`
  if (listeners === undefined) return unknown(check, 'The ports of this machine are not shown')
  const taken = listeners.find((listener) => listener.port === port)
  if (taken === undefined) return ok(check, `Nothing listens on port ${port}`)
  return problem(
    check,
    `Port ${port} is taken by ${taken.by ?? 'another program'}`,
    'End that program, or use another port',
  )
}

/** The moments of a fail-over, from the logs of the controller that takes over and of the agents. */
import { connect } from 'node:net'
import { systemClock as clock } from '../../daemon/clock.ts'
import type { LogLine } from '../support/program.ts'

/** Wall time in milliseconds, as all programs of one machine log it. */
type Instant = number

export type FailOverLogs = {
  readonly killedMs: Instant
  /** Log of the controller that takes over. */
  readonly standby: readonly LogLine[]
  /** Log of each agent. */
  readonly agents: readonly (readonly LogLine[])[]
  /** When its MQTT port accepted a connection. */
  readonly openedMs: Instant
}

/** Lines `what: seconds`, of what happened after the kill: agents that are not connected again are counted. */
export function momentsOf({ killedMs, standby, agents, openedMs }: FailOverLogs): readonly string[] {
  const after = (lines: readonly LogLine[], message: string) =>
    lines.find((line) => line.message === message && instantOf(line) >= killedMs)
  const instants = (message: string) =>
    agents.flatMap((lines) => {
      const line = after(lines, message)
      return line === undefined ? [] : [instantOf(line)]
    })
  const since = (instant: Instant | undefined, from = killedMs) =>
    instant === undefined ? 'not logged' : `${((instant - from) / 1000).toFixed(1)} s`
  const spread = (all: readonly Instant[], from = killedMs) =>
    [0, 0.5, 0.9, 1].map((share) => since(quantile(all, share), from)).join(', ')
  const lead = after(standby, 'Controller leads')
  const ready = after(standby, 'Controller ready')
  const connected = instants(connectedMessage)
  const tries = agents.flatMap((lines) => Number(after(lines, connectedMessage)?.['failedTries'] ?? 0))
  return [
    `agents noticed the loss (first, half, nine of ten, last): ${spread(instants('Connection to the control plane lost, trying until it is back'))}`,
    `the other controller was elected: ${since(lead && instantOf(lead))}`,
    `its MQTT port was open: ${since(openedMs)}`,
    `it was ready: ${since(ready && instantOf(ready))}`,
    `agents were connected (first, half, nine of ten, last): ${spread(connected)}`,
    `… after the port was open: ${spread(connected, openedMs)}`,
    `attempts of an agent that failed before (fewest, half, nine of ten, most): ${[0, 0.5, 0.9, 1].map((share) => quantile(tries, share) ?? 0).join(', ')}`,
    `agents connected: ${connected.length} of ${agents.length}`,
  ]
}

export const connectedMessage = 'Connected to the control plane'

/** Resolves with the wall time at which the port accepts a connection, looked at ten times a second; rejects when `signal` aborts. */
export async function openedAt(host: string, port: number, signal: AbortSignal): Promise<Instant> {
  for (;;) {
    signal.throwIfAborted()
    if (await accepts(host, port)) return Date.now()
    await clock.sleep(100, signal)
  }
}

function instantOf({ time }: LogLine): Instant {
  return Date.parse(String(time))
}

function quantile(all: readonly number[], share: number): number | undefined {
  const sorted = all.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** The one connection on which the cards of the fleet come, and the state that all views draw. */
import { useEffect, useState } from 'preact/hooks'
import type { FleetUpdate } from '../../api/dashboard/dashboard-messages.ts'
import { emptyFleet, type FleetState, fleetAfter } from '../../api/dashboard/fleet-state.ts'

export type Link = 'connecting' | 'connected' | 'lost'

type Listener = () => void

/** What is drawn, and what has come: after a lost connection the old cards stay until all new ones are there. */
let state: FleetState = emptyFleet
let arrived: FleetState = emptyFleet
let link: Link = 'connecting'
const listeners = new Set<Listener>()

/** One after the other, since the stream was open. */
let refusals = 0
const longestWaitMs = 30_000

/** Whose cards are shown: another login must not see them. */
let owner = ''

/**
 * Opens the stream for a login, `of` its name; `onRefused` when the server refuses it, for ever or for a while. Returns what closes
 * it: the cards stay until the same login opens it again, or another one.
 */
export function openStream(of: string, onRefused: () => void): () => void {
  if (of !== owner) state = emptyFleet
  owner = of
  const source = new EventSource('/ui/api/stream')
  let again: ReturnType<typeof setTimeout> | undefined
  source.onopen = () => {
    refusals = 0
    setLink('connected')
  }
  source.onmessage = ({ data }) => {
    arrived = fleetAfter(arrived, JSON.parse(data) as FleetUpdate)
    if (!arrived.isComplete && state.isComplete) return
    state = arrived
    notify()
  }
  source.onerror = () => {
    setLink('lost')
    // A browser tries again by itself, but not after a refusal.
    if (source.readyState === EventSource.CLOSED)
      again = setTimeout(onRefused, Math.min(longestWaitMs, 500 * 2 ** refusals++))
  }
  return () => {
    clearTimeout(again)
    source.close()
    arrived = emptyFleet
    link = 'connecting'
  }
}

function setLink(next: Link): void {
  link = next
  notify()
}

let planned = false

/** Once for each frame, however many messages came. */
function notify(): void {
  if (planned) return
  planned = true
  setTimeout(() => {
    planned = false
    for (const listener of listeners) listener()
  }, 16)
}

/** The fleet and the link to the controller; draws again after each change. */
export function useFleet(): { readonly fleet: FleetState; readonly link: Link } {
  const [, draw] = useState(0)
  useEffect(() => {
    const listener = () => draw((count) => count + 1)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [])
  return { fleet: state, link }
}

/** Seconds since 1970; draws again every few seconds. */
export function useNow(): number {
  const [now, setNow] = useState(() => Math.floor(Date.now() / 1000))
  useEffect(() => {
    const timer = setInterval(() => setNow(Math.floor(Date.now() / 1000)), 5_000)
    return () => clearInterval(timer)
  }, [])
  return now
}

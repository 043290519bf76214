/** The frame of the page: the login, or the view that the address names. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SessionAnswer } from '../../api/dashboard/dashboard-messages.ts'
import { askAgainMs, currentSession, isPassing, logIn, reasonOf } from './api.ts'
import { EventsView } from './events-view.tsx'
import { openStream } from './fleet-stream.ts'
import { FleetView } from './fleet-view.tsx'
import { Header } from './header.tsx'
import { usePlace } from './hooks.ts'
import { LoginPage } from './login-page.tsx'
import { LoginsPage } from './logins-page.tsx'
import { MapView } from './map-view.tsx'
import { NodePage } from './node-page.tsx'
import { PodPage } from './pod-page.tsx'
import { PodsView } from './pods-view.tsx'
import { StorageView } from './storage-view.tsx'
import { WorkloadsView } from './workloads-view.tsx'

type Access =
  | { readonly is: 'unknown' }
  | { readonly is: 'out'; readonly problem: string | undefined }
  /** Another `entry` opens the stream again. */
  | { readonly is: 'in'; readonly session: SessionAnswer; readonly entry: number }

export function App() {
  const [access, setAccess] = useState<Access>({ is: 'unknown' })
  const again = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const entries = useRef(0)
  /** While the controller starts or has too many requests, what is shown stays: a screen on a wall has no keyboard to load it again. */
  const enter = async () => {
    clearTimeout(again.current)
    const servesOnce = linkIn(location.hash)?.kind === 'login'
    try {
      await logInByAddress()
      const session = await currentSession()
      entries.current += 1
      setAccess(
        session === undefined ? { is: 'out', problem: undefined } : { is: 'in', session, entry: entries.current },
      )
    } catch (error) {
      if (servesOnce || !isPassing(error)) return setAccess({ is: 'out', problem: reasonOf(error) })
      again.current = setTimeout(() => void enter(), askAgainMs(error))
    }
  }
  useEffect(() => void enter(), [])
  useEffect(() => {
    const followed = () => {
      if (linkIn(location.hash) !== undefined) void enter()
    }
    addEventListener('hashchange', followed)
    return () => removeEventListener('hashchange', followed)
  })
  const entry = access.is === 'in' ? access.entry : undefined
  useEffect(() => {
    if (access.is !== 'in') return
    const { user, id } = access.session
    return openStream(`${user} ${id}`, () => void enter())
  }, [entry])

  if (access.is === 'unknown') return <p class="starting">Connecting to the controller…</p>
  if (access.is === 'out') return <LoginPage problem={access.problem} onLogin={() => void enter()} />
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to content
      </button>
      <Header session={access.session} onLogout={() => setAccess({ is: 'out', problem: undefined })} />
      <main id="content" tabIndex={-1}>
        <CurrentView session={access.session} />
      </main>
    </>
  )
}

function CurrentView({ session }: { readonly session: SessionAnswer }) {
  const place = usePlace()
  switch (place.view) {
    case 'node':
      return <NodePage key={place.name} name={place.name} />
    case 'pod':
      return <PodPage key={`${place.namespace}/${place.name}`} namespace={place.namespace} name={place.name} />
    case 'logins':
      return <LoginsPage />
    case 'fleet':
      return <FleetView place={place} session={session} />
    case 'map':
      return <MapView place={place} />
    case 'pods':
      return <PodsView place={place} />
    case 'workloads':
      return <WorkloadsView place={place} />
    case 'storage':
      return <StorageView place={place} />
    case 'events':
      return <EventsView place={place} />
  }
}

function linkIn(hash: string): { readonly kind: 'login' | 'kiosk'; readonly secret: string } | undefined {
  const [, kind, secret] = /^#(login|kiosk)=([\w.-]+)$/.exec(hash) ?? []
  return secret !== undefined && (kind === 'login' || kind === 'kiosk') ? { kind, secret } : undefined
}

/** Logs in with the link in the address. A login link leaves it: it was used. A kiosk link stays, for the next start of the browser. */
async function logInByAddress(): Promise<void> {
  const link = linkIn(location.hash)
  if (link === undefined) return
  if (link.kind === 'kiosk' && (await currentSession())?.isKiosk) return
  if (link.kind === 'login') history.replaceState(null, '', location.pathname)
  const proof = link.kind === 'login' ? { link: link.secret } : { kiosk: link.secret }
  try {
    await logIn(proof)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    // The connection was lost: the link may have been used or not.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    if ((await currentSession()) === undefined) await logIn(proof)
  }
}

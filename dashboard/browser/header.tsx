/** The head of every view: where one is, the search, the link to the controller, and the login. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SessionAnswer } from '../../api/dashboard/dashboard-messages.ts'
import { levelOf } from '../../api/dashboard/node-view.ts'
import { hrefOf, listPlace, type Place, type ViewName, viewNames } from '../model/places.ts'
import { callApi } from './api.ts'
import { useFleet } from './fleet-stream.ts'
import { usePlace } from './hooks.ts'
import { Mark } from './mark.tsx'

const titles: { readonly [V in ViewName]: string } = {
  fleet: 'Fleet',
  map: 'Map',
  pods: 'Pods',
  workloads: 'Workloads',
  storage: 'Storage',
  events: 'Events',
}

export function Header({ session, onLogout }: { readonly session: SessionAnswer; readonly onLogout: () => void }) {
  const place = usePlace()
  const { fleet, link } = useFleet()
  const bad = [...fleet.nodes.values()].filter((node) => levelOf(node) === 'bad').length
  useEffect(() => {
    document.title = `${bad > 0 ? `(${bad}) ` : ''}${titleOf(place)} · Bramble`
  })
  const logOut = async () => {
    await callApi('POST', '/ui/api/logout').catch(() => undefined)
    onLogout()
  }
  return (
    <header>
      <div class="bar">
        <a class="brand" href="#/fleet" aria-label="Bramble">
          <Mark />
          <span>Bramble</span>
        </a>
        <nav aria-label="Views">
          {viewNames.map((view) => (
            <a key={view} href={hrefOf(listPlace(view))} aria-current={isAt(place, view) ? 'page' : undefined}>
              {titles[view]}
              {view === 'fleet' && bad > 0 && (
                <span class="count" title={`${bad} not ready`}>
                  {bad}
                </span>
              )}
            </a>
          ))}
        </nav>
        <Search place={place} />
        <span class={`link ${link}`} role="status">
          {link === 'connected' ? 'Live' : link === 'lost' ? 'Reconnecting…' : 'Connecting…'}
        </span>
        <ThemeButton />
        <details class="menu">
          <summary>{session.isKiosk ? 'Kiosk' : session.user}</summary>
          <div class="sheet">
            {!session.isKiosk && <a href="#/logins">Logins</a>}
            <a href="/ca.crt" download="bramble-ca.crt">
              Certificate of the fleet
            </a>
            <button type="button" onClick={() => void logOut()}>
              Log out
            </button>
            <small>Controller {session.version}</small>
          </div>
        </details>
      </div>
    </header>
  )
}

function isAt(place: Place, view: ViewName): boolean {
  return place.view === view || (place.view === 'node' && view === 'fleet') || (place.view === 'pod' && view === 'pods')
}

function titleOf(place: Place): string {
  if (place.view === 'node' || place.view === 'pod') return place.name
  return place.view === 'logins' ? 'Logins' : titles[place.view]
}

type ListPlace = Extract<Place, { readonly search: string }>

function listOf(place: Place): ListPlace {
  if ('search' in place) return place
  return { view: place.view === 'pod' ? 'pods' : 'fleet', search: '', filters: {} }
}

/** Searches the list that is shown, or the list that the shown page belongs to. */
function Search({ place }: { readonly place: Place }) {
  const input = useRef<HTMLInputElement>(null)
  const list = listOf(place)
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const inField = event.target instanceof HTMLElement && event.target.closest('input, textarea, select, .shell')
      if (event.key !== '/' || inField) return
      event.preventDefault()
      input.current?.focus()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
  const search = (text: string) => history.replaceState(null, '', hrefOf({ ...list, search: text }))
  return (
    <input
      ref={input}
      type="search"
      class="search"
      placeholder="Search"
      aria-label={`Search ${titles[list.view]}, key /`}
      aria-keyshortcuts="/"
      value={'search' in place ? place.search : ''}
      onInput={({ currentTarget }) => {
        search(currentTarget.value)
        dispatchEvent(new HashChangeEvent('hashchange'))
      }}
    />
  )
}

const themes = ['auto', 'light', 'dark'] as const

function ThemeButton() {
  const [theme, setTheme] = useState(() => document.documentElement.dataset['theme'] ?? storedTheme())
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme
    try {
      localStorage.setItem('theme', theme)
    } catch {
      // A browser that stores nothing shows the theme until it is closed.
    }
  }, [theme])
  const next = themes[((themes as readonly string[]).indexOf(theme) + 1) % themes.length] ?? 'auto'
  return (
    <button
      type="button"
      class="theme"
      aria-label={`Theme: ${theme}. Change to ${next}`}
      onClick={() => setTheme(next)}
    >
      {theme === 'dark' ? '☾' : theme === 'light' ? '☀' : '◐'}
    </button>
  )
}

function storedTheme(): string {
  try {
    return localStorage.getItem('theme') ?? 'auto'
  } catch {
    return 'auto'
  }
}

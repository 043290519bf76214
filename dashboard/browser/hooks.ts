/** What several views need of the browser. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Place, placeOf } from '../model/places.ts'
import type { Window } from '../model/virtual-rows.ts'
import { callApi, mayI, type Question, reasonOf } from './api.ts'

/** The place in the address. */
export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const changed = () => setHash(location.hash)
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return placeOf(hash)
}

/** False until the server has answered. `question` undefined: there is nothing to ask yet. */
export function useMay(question: Question | undefined): boolean {
  const [may, setMay] = useState(false)
  const key = JSON.stringify(question)
  useEffect(() => {
    let isCurrent = true
    setMay(false)
    if (question !== undefined) void mayI(question).then((answer) => isCurrent && setMay(answer))
    return () => {
      isCurrent = false
    }
  }, [key])
  return may
}

export type Loaded<T> = { readonly value: T | undefined; readonly problem: string | undefined }

/** GET of a path, again whenever `version` changes; the last value stays meanwhile. `path` undefined: nothing is asked. */
export function useLoaded<T>(path: string | undefined, version: unknown): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { readonly path: string | undefined }>({
    value: undefined,
    problem: undefined,
    path,
  })
  useEffect(() => {
    if (path === undefined) return
    const leaving = new AbortController()
    callApi('GET', path, { signal: leaving.signal }).then(
      (value) => setLoaded({ value: value as T, problem: undefined, path }),
      (error: unknown) => {
        if (!leaving.signal.aborted) setLoaded((last) => ({ ...last, problem: reasonOf(error), path }))
      },
    )
    return () => leaving.abort()
  }, [path, version])
  return loaded.path === path ? loaded : { value: undefined, problem: undefined }
}

/** In pixels: a list is drawn again after so much scrolling, and not for each frame. */
const drawnEvery = 100

/** The part of an element that is in the window of the browser, and its width. */
export function useWindow<E extends HTMLElement>() {
  const element = useRef<E>(null)
  const [seen, setSeen] = useState<Window & { readonly width: number }>({ scrollTop: 0, height: 1_000, width: 0 })
  useEffect(() => {
    const look = () => {
      const box = element.current?.getBoundingClientRect()
      if (box === undefined) return
      const scrollTop = Math.max(0, Math.floor(-box.top / drawnEvery) * drawnEvery)
      const next = { scrollTop, height: innerHeight + drawnEvery, width: box.width }
      setSeen((last) => (isSame(last, next) ? last : next))
    }
    look()
    const watching = new ResizeObserver(look)
    if (element.current !== null) watching.observe(element.current)
    addEventListener('scroll', look, { passive: true })
    addEventListener('resize', look)
    return () => {
      watching.disconnect()
      removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  }, [])
  return { element, seen }
}

function isSame(a: Window & { readonly width: number }, b: Window & { readonly width: number }): boolean {
  return a.scrollTop === b.scrollTop && a.height === b.height && a.width === b.width
}

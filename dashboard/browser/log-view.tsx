/** The log of a container, as it is written. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { logLines } from '../model/log-lines.ts'
import { reasonOf } from './api.ts'

export type LogViewProps = {
  /** API path of the pod. */
  readonly path: string
  readonly container: string
}

/** The newest lines stay: a browser cannot show all of a long log. */
const mostLines = 5_000
const tailLines = 500

export function LogView({ path, container }: LogViewProps) {
  const [lines, setLines] = useState<readonly string[]>([])
  const [state, setState] = useState('Reading…')
  const [isPrevious, setPrevious] = useState(false)
  const [follows, setFollows] = useState(true)
  const [attempt, setAttempt] = useState(0)
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    const leaving = new AbortController()
    let again: ReturnType<typeof setTimeout> | undefined
    setState('Reading…')
    const options = new URLSearchParams({
      container,
      tailLines: String(tailLines),
      ...(isPrevious ? { previous: 'true' } : { follow: 'true' }),
    })
    readLines(`${path}/log?${options}`, leaving.signal, (more, isFirst) => {
      setState(isPrevious ? '' : 'Live')
      setLines((present) => (isFirst ? [...more] : [...present, ...more].slice(-mostLines)))
    }).then(
      () => setState('The log has ended.'),
      (error: unknown) => {
        if (leaving.signal.aborted) return
        setState(reasonOf(error))
        // The connection was lost: read again, from the newest lines on.
        if (error instanceof TypeError) again = setTimeout(() => setAttempt(attempt + 1), 2_000)
      },
    )
    return () => {
      leaving.abort()
      clearTimeout(again)
    }
  }, [path, container, isPrevious, attempt])
  useEffect(() => {
    if (follows) box.current?.scrollTo(0, box.current.scrollHeight)
  }, [lines, follows])
  return (
    <div class="log">
      <div class="tools">
        <span>
          Log of <strong>{container}</strong>
        </span>
        <span class="muted" role="status">
          {state}
        </span>
        <label class="check">
          <input
            type="checkbox"
            checked={follows}
            onChange={({ currentTarget }) => setFollows(currentTarget.checked)}
          />{' '}
          Scroll along
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={isPrevious}
            onChange={({ currentTarget }) => setPrevious(currentTarget.checked)}
          />{' '}
          Before the last restart
        </label>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <pre ref={box} role="log" tabIndex={0} aria-label={`Log of ${container}`}>
        {lines.join('\n')}
      </pre>
    </div>
  )
}

/** Resolves at the end of the log. */
async function readLines(
  path: string,
  signal: AbortSignal,
  onLines: (lines: readonly string[], isFirst: boolean) => void,
): Promise<void> {
  const answer = await fetch(path, { signal, credentials: 'same-origin' })
  if (!answer.ok || answer.body === null) {
    const content = (await answer.json().catch(() => ({}))) as { readonly message?: string }
    throw new Error(content.message ?? `The server answered with status ${answer.status}.`)
  }
  onLines([], true)
  let rest = ''
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    const next = logLines(rest, value)
    rest = next.rest
    if (next.lines.length > 0) onLines(next.lines, false)
  }
  if (rest !== '') onLines([rest], false)
}

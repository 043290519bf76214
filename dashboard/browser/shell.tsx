/** A shell in a container. The terminal is large: it is loaded when the first shell is opened. */
import { useEffect, useRef, useState } from 'preact/hooks'

export type ShellProps = {
  /** API path of the pod. */
  readonly path: string
  readonly container: string
}

export function Shell({ path, container }: ShellProps) {
  const box = useRef<HTMLDivElement>(null)
  const [state, setState] = useState('Connecting…')
  useEffect(() => {
    let close = () => {}
    let isGone = false
    void import('./terminal.ts').then(
      ({ openTerminal }) => {
        if (box.current !== null && !isGone) close = openTerminal(box.current, `${path}/exec`, container, setState)
      },
      () => setState('The terminal could not be loaded. Load the page again.'),
    )
    return () => {
      isGone = true
      close()
    }
  }, [path, container])
  return (
    <div class="log">
      <div class="tools">
        <span>
          Shell in <strong>{container}</strong>
        </span>
        <span class="muted" role="status">
          {state}
        </span>
        <span class="hint">Leave the terminal with Ctrl+Shift+Escape</span>
      </div>
      <div class="shell" ref={box} />
    </div>
  )
}

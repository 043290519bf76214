/** A dialog over the page, and the question before something is changed. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { reasonOf } from './api.ts'

export type DialogProps = { readonly title: string; readonly onClose: () => void; readonly children: ComponentChildren }

/** Modal: the browser keeps the keyboard inside, and Escape closes it. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}

export type ActionProps = {
  /** What the button reads. */
  readonly name: string
  /** The question, as a sentence. */
  readonly question: ComponentChildren
  readonly act: () => Promise<unknown>
  readonly isDangerous?: boolean
  readonly title?: string
}

/** A button that asks before it acts, and shows the server's refusal. */
export function Action({ name, question, act, isDangerous = false, title = name }: ActionProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class={isDangerous ? 'danger' : ''} onClick={() => setOpen(true)}>
        {name}
      </button>
      {isOpen && (
        <Confirm
          name={name}
          title={title}
          question={question}
          act={act}
          isDangerous={isDangerous}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}

function Confirm({
  name,
  title = name,
  question,
  act,
  isDangerous,
  onClose,
}: ActionProps & { readonly onClose: () => void }) {
  const [isActing, setActing] = useState(false)
  const [problem, setProblem] = useState<string>()
  const confirm = async () => {
    setActing(true)
    try {
      await act()
      onClose()
    } catch (error) {
      setProblem(reasonOf(error))
      setActing(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="question">{question}</div>
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class={isDangerous ? 'danger solid' : 'primary'}
          disabled={isActing}
          onClick={() => void confirm()}
        >
          {isActing ? 'Working…' : name}
        </button>
      </div>
    </Dialog>
  )
}
